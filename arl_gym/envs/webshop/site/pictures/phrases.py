"""The phrases, in the singular or not, that name each kind of product; no phrase names two.

In a text the phrase that ends last decides, and of those the longest (see `kinds.kind_of`), so that what a
phrase's last word says alone is not here.
"""

PHRASES = {
    "shoe": "shoe, loafer, moccasin, oxford, flat, slip on, footwear, brogue, mule, clog",
    "sneaker": (
        "sneaker, running shoe, athletic shoe, tennis shoe, walking shoe, trainer, track spike, basketball "
        "shoe, hiking shoe, athletic, running"
    ),
    "boot": "boot, bootie",
    "sandal": "sandal, flip flop, espadrille",
    "heel": "pump, heel, stiletto, wedge",
    "slipper": "slipper, house shoe",
    "tee": "shirt, tee, tshirt, top, polo, henley, jersey, tunic, undershirt, clothing",
    "blouse": "blouse, button down shirt, dress shirt, button up shirt, flannel shirt, button down",
    "sweater": "sweater, cardigan, pullover, sweatshirt, knitwear, turtleneck",
    "tank": "tank, tank top, cami, camisole, muscle shirt, vest top",
    "hoodie": "hoodie, hooded sweatshirt, hoodies sweatshirt",
    "jacket": "jacket, puffer, parka, windbreaker, vest, outerwear, fleece",
    "coat": "coat, overcoat, trench, blazer, suit, tuxedo, suit jacket, peacoat",
    "dress": "dress, gown, sundress, jumpsuit, romper, costume",
    "skirt": "skirt, tutu, skort",
    "jeans": "jean, pant, trouser, denim, chino, slack, overall, sweatpant, jogger, cargo",
    "leggings": "legging, tight, yoga pant, stocking, pantyhose, capri",
    "shorts": "short, trunk",
    "pajamas": (
        "pajama, pyjama, sleepwear, nightwear, nightgown, loungewear, lounge set, sleep lounge, nightdress"
    ),
    "robe": "robe, bathrobe, kimono",
    "bra": "bra, bralette, lingerie",
    "briefs": "brief, underwear, panty, thong, boxer, boxer short, shapewear",
    "swimsuit": "swimsuit, bikini, swimwear, bathing suit, tankini, bodysuit, leotard, cover up",
    "socks": "sock, hosiery",
    "gloves": "glove, mitten",
    "scarf": "scarf, shawl, bandana, wrap",
    "cap": "cap, visor, snapback",
    "hat": "hat, fedora",
    "beanie": "beanie, skull cap, knit hat, winter hat",
    "belt": "belt, suspender",
    "tie": "tie, necktie, neckwear",
    "sunglasses": "sunglass, eyeglass, eyewear, shade, goggle, reading glass, sun glass, spectacle",
    "bag": "bag, handbag, purse, tote, clutch, crossbody, satchel, duffel, bag case",
    "backpack": "backpack, rucksack, school bag, bookbag, daypack, luggage, suitcase",
    "wallet": "wallet, card holder, coin purse, money clip, card case",
    "watch": "watch, wristwatch, smartwatch, fitness tracker",
    "necklace": "necklace, pendant, jewelry, jewellery, chain, brooch",
    "ring": "ring, bracelet, wedding band, bangle, anklet",
    "earrings": "earring, stud, hoop, piercing, body jewelry",
    "rug": "rug, carpet, runner, mat, doormat",
    "coffee table": "coffee table, cocktail table, end table, side table, ottoman table, accent table",
    "table": "table, dining set, kitchen island, dining room, kitchen dining room furniture, bench",
    "desk": "desk, workstation, office furniture",
    "curtain": (
        "curtain, drape, drapery, window treatment, valance, window panel, backdrop, tapestry, background"
    ),
    "shower curtain": "shower curtain, bath curtain, shower liner",
    "bed": (
        "bed, bedding, sheet, bedroom set, duvet, duvet cover, comforter, headboard, bedroom furniture, "
        "bedspread, quilt, pillowcase set, coverlet"
    ),
    "mattress": "mattress, mattress topper, box spring, futon",
    "pillow": "pillow, cushion, pillow cover, pillowcase, bolster, cushion cover",
    "blanket": "blanket, throw, afghan",
    "towel": "towel, washcloth, napkin, tablecloth",
    "wall art": (
        "wall art, poster, print, painting, canvas, picture, decal, photo frame, wall decor, mural, "
        "wallpaper, wall sculpture, artwork, photograph, sticker, home decor, window film"
    ),
    "floor lamp": "floor lamp, torchiere, standing lamp, tall lamp",
    "lamp": "lamp, lampshade, lamp shade, lantern, night light, nightlight",
    "chandelier": (
        "chandelier, pendant light, ceiling light, ceiling fan, light fixture, island light, ceiling lamp, "
        "sconce, vanity light, lighting, pendant lamp, wall light"
    ),
    "office chair": (
        "office chair, desk chair, gaming chair, computer chair, task chair, swivel chair, drafting chair, "
        "barber chair, salon chair, massage chair, massage table, salon equipment"
    ),
    "chair": "chair, seat",
    "sofa": (
        "sofa, couch, loveseat, sectional, recliner, accent chair, armchair, living room furniture, sofa "
        "bed, chaise, living room, slipcover, sofa cover, bean bag"
    ),
    "stool": "stool, ottoman, barstool, pouf, footstool, foot rest, footrest",
    "bookshelf": "bookshelf, bookcase, shelf, rack, bookshelve, shelve, shelving, etagere, stand",
    "cabinet": (
        "cabinet, dresser, nightstand, sideboard, buffet, wardrobe, chest, drawer, tv stand, credenza, "
        "vanity, hutch, armoire, console, entertainment center, bedside table, night stand, furniture, "
        "cupboard, tv unit"
    ),
    "candle": "candle, wax melt, tealight, home fragrance, candleholder, wick, reed diffuser, incense",
    "plant pot": "planter, pot, plant container, garden bed, window box",
    "plant": (
        "plant, tree, flower, wreath, bouquet, garland, garden, shrub, ficus, bonsai, succulent, greenery, "
        "grass"
    ),
    "mug": "mug, tumbler, cup, teacup",
    "plate": (
        "plate, dinnerware, dish, bowl, flatware, cutlery, tableware, fork, spoon, platter, tray, placemat, "
        "kitchen, dining"
    ),
    "cup": "goblet, glassware, glass, wine, cocktail mixer",
    "vase": "vase, urn",
    "clock": "clock, timer",
    "mirror": "mirror",
    "blinds": "blind, roller shade, window shade, shutter, roman shade, cellular shade, covering",
    "basket": (
        "basket, bin, hamper, organizer, storage, container, crate, laundry bag, wash bag, storage bag, "
        "trash can"
    ),
    "pan": "pan, skillet, cookware, pot set, wok, griddle, bakeware, grill, saucepan, cooking tool",
    "house": "house, outdoor furniture, patio, lawn, door, window, shed",
    "cream jar": (
        "moisturizer, cream, balm, body butter, hair mask, scrub, wax, pomade, gel, mud, clay, styling "
        "product, treatment, dip powder, foundation powder, ointment, petroleum jelly"
    ),
    "pump bottle": (
        "shampoo, conditioner, body wash, shower gel, hair wash, hand soap, mouthwash, hand wash, bubble "
        "bath, hand sanitizer, cleanser, dispenser, face wash, body lotion, lotion pump, household supply"
    ),
    "tube": (
        "tube, lotion, sunscreen, face wash cream, primer, foundation, concealer, bb cream, body milk, sun "
        "care, aloe, self tanner, hair dye, hair color, hair removal cream, depilatory, bleach, hair "
        "coloring"
    ),
    "lipstick": "lipstick, lip balm, lip, chapstick, lip care, gloss, lip butter, lip treatment",
    "makeup brushes": (
        "makeup brush, brush set, cosmetic brush, powder brush, foundation brush, makeup tool, eyeshadow "
        "brush, kabuki brush, brush tool, beauty tool, makeup brushe, sponge"
    ),
    "nail polish": (
        "gel polish, nail, manicure, top coat, nail care, nail gel, pedicure, nail clipper, base coat"
    ),
    "perfume": "perfume, cologne, fragrance, body mist, parfum, toilette, body spray",
    "toothbrush": (
        "toothbrush, flosser, dental care, tongue scraper, oral care, floss, tongue cleaner, interdental "
        "brush"
    ),
    "toothpaste": "toothpaste, whitening, tooth powder, teeth",
    "hair": "hair, hairpiece, ponytail, weave, hair care, hair topper, bun, hair tie, scrunchie",
    "wig": "wig, lace front, hair replacement, toupee",
    "dropper": (
        "serum, oil, beard care, tincture, toner, retinol, beard balm, hair loss treatment, hair regrowth "
        "treatment, hair loss product, ampoule, essence, extract"
    ),
    "sheet mask": "mask, patch",
    "hair dryer": (
        "dryer, hairdryer, curling iron, straightener, flat iron, curler, styling tool, hot air styler, "
        "curling wand, hair roller"
    ),
    "soap": "soap, bath bomb, shampoo bar, soap bar, soap dish, bath salt, bath accessory, loofah",
    "razor": (
        "razor, shaver, shave, trimmer, shaving, hair removal, clipper, epilator, blade, shaving cream, "
        "aftershave, tweezer, hair cutting"
    ),
    "hair brush": "hairbrush, comb, detangler, brush, massager, back scrubber",
    "mascara": (
        "mascara, eyeliner, eyebrow, eyelash, brow, lash, eye liner, brow gel, lash serum, eyebrow gel, "
        "eyelash curler"
    ),
    "palette": (
        "palette, eyeshadow, eye shadow, blush, makeup, bronzer, highlighter, powder, contour, cosmetic, "
        "body paint, glitter"
    ),
    "deodorant": "deodorant, antiperspirant",
    "spray": (
        "spray, hairspray, mist, spray bottle, dry shampoo, makeup remover, air freshener, micellar water, "
        "refillable container"
    ),
    "bottles": (
        "skincare, bath, gift set, travel bottle, beauty, spa, refillable bottle, travel container, bottle "
        "set, care, massage"
    ),
    "headphones": "headphone, headset, headphones earbud",
    "earbuds": (
        "earbud, earphone, in ear headphone, earbud headphone, airpod, earbud case, hearing aid, ear bud"
    ),
    "phone case": "case, bumper, cover, holster, sleeve",
    "phone": "phone, smartphone, iphone, galaxy, telephone",
    "screen protector": (
        "screen protector, privacy screen, screen film, glass film, tempered glass, lens protector, screen "
        "guard"
    ),
    "cable": "cable, cord, connector, wire, splitter",
    "power bank": "power bank, portable charger, battery case, battery pack, solar charger, external battery",
    "watch band": "watchband, wristband, strap, band, solo loop",
    "keyboard": "keyboard, keyboard mouse, keypad, piano",
    "mouse": "mouse, mice, trackball",
    "tripod": "tripod, monopod, selfie stick, light stand, gimbal, camera stand",
    "speaker": "speaker, sound bar, soundbar, subwoofer, boombox, radio, music box, microphone",
    "home theater": (
        "home theater, audio system, receiver, surround sound, stereo, bookshelf speaker, shelf system, "
        "amplifier, tower speaker, speaker system, blu ray player, dvd player"
    ),
    "webcam": (
        "webcam, security camera, surveillance camera, dome camera, streaming camera, baby monitor, video "
        "doorbell, conference camera, ip camera, dash cam, bullet camera, nanny cam, surveillance, document "
        "camera"
    ),
    "memory card": "flash drive, ssd, hard drive, ram, memory, solid state drive, card",
    "camera": "camera, dslr, lens, camcorder, photography, flash, photo, point and shoot, drone",
    "television": (
        "tv, television, monitor, display, video wall, projection screen, projector screen, digital signage"
    ),
    "laptop": "laptop, notebook, computer, desktop, chromebook, pc, macbook, tower",
    "tablet": "tablet, ipad, e reader, ereader, kindle, tablet case",
    "charger": (
        "charger, adapter, plug, power supply, outlet, charging station, power strip, surge protector, "
        "dock, hub, power cable, switch"
    ),
    "projector": "projector",
    "router": (
        "router, modem, wifi, antenna, networking, signal booster, range extender, network switch, access "
        "point, walkie talkie, bluetooth adapter, two way radio"
    ),
    "remote": "remote, streaming media player, calculator",
    "battery": "battery",
    "binoculars": "binocular, telescope, monocular, microscope, scope, magnifier",
    "gamepad": (
        "gamepad, controller, joystick, game console, nintendo, game, toy, drum, guitar, virtual reality, "
        "vr, vr headset"
    ),
    "light": "light, bulb, flashlight, lighting photography, led, softbox",
    "device": (
        "electronic, gadget, player, gps, alarm, thermometer, scale, printer, turntable, subwoofer "
        "amplifier, fan, humidifier, vacuum, portable dvd player, scanner, recorder, machine, vcr"
    ),
    "tea": "tea, matcha, tea bag, matcha powder, chai, tea sampler, oolong, kombucha",
    "coffee": (
        "coffee, coffee bean, k cup, cold brew, espresso, coffee creamer, cocoa, hot chocolate, protein "
        "powder, drink mix, shake mix"
    ),
    "granola bar": "bar, nutrition",
    "trail mix": (
        "trail mix, nut, almond, cashew, seed, snack mix, pistachio, peanut, walnut, pecan, macadamia, "
        "trail mixe"
    ),
    "dried fruit": (
        "dried fruit, raisin, dried mango, dried apricot, dried strawberry, fruit snack, fruit leather, "
        "date, prune, dried cranberry, fruit chip"
    ),
    "chips": "chip, crisp, snack, pretzel, snack food, cracker, pork rind, puff, rice cake, seaweed",
    "sauce jar": (
        "sauce, pesto, salsa, marinara, pickle, dip, relish, olive, mayonnaise, chutney, mustard, ketchup, "
        "gravy, tapenade, kimchi, sauerkraut"
    ),
    "honey": "honey, jam, jelly, preserve, marmalade, spread, ghee, butter",
    "hot sauce": (
        "hot sauce, sriracha, buffalo sauce, chili oil, pepper sauce, wing sauce, soy sauce, bbq sauce, "
        "chili sauce, barbecue sauce, worcestershire sauce, dressing, marinade, fish sauce, teriyaki sauce"
    ),
    "oil": (
        "olive oil, avocado oil, truffle oil, cooking oil, coconut oil, vinegar, garlic oil, cooking oil "
        "spray, syrup, vegetable oil, sesame oil, salad oil, flavoring"
    ),
    "chocolate": "chocolate, chocolate bar, truffle, fudge, cacao, brownie, chocolate candy",
    "popcorn": "popcorn, popped corn, corn snack, popcorn seasoning",
    "spice": (
        "spice, seasoning, curry powder, rub, salt, pepper, herb, garlic powder, cinnamon, sweetener, "
        "sugar, baking powder, food coloring, spice gift set, sprinkle, yeast, stevia, bouillon, vanilla "
        "extract"
    ),
    "can": (
        "can, canned, soup, tuna, soda, energy drink, beer, sparkling water, canned food, tomato, bean, "
        "chili, soft drink, broth, sardine, cola, stew, seafood, fish, salmon"
    ),
    "bottle": "water, drink, beverage, bottle, smoothie, lemonade, cocktail, shake, iced tea",
    "cookies": (
        "cookie, biscuit, wafer, shortbread, pastry, donut, muffin, cookie gift, bakery, graham cracker"
    ),
    "candy": (
        "candy, gummy, lollipop, mint, gum, licorice, marshmallow, jelly bean, sweet, caramel, taffy, toffee"
    ),
    "cake": (
        "cake, cupcake, party supply, frosting, dessert, pie, birthday decoration, baking mix, pudding, "
        "topper, cheesecake, party decoration"
    ),
    "cereal": "cereal, granola, oatmeal, oat, muesli, breakfast, pancake mix, breakfast food, waffle",
    "cheese": "cheese, cheddar, dairy, parmesan, cheese gift, yogurt, mozzarella",
    "meat": "meat, beef, jerky, bacon, sausage, chicken, ham, turkey, steak, pork, salami, meat snack",
    "carton": "milk, juice, broth carton, creamer, coconut water, egg, ice cream, baby formula, milk cream",
    "noodles": (
        "noodle, pasta, ramen, spaghetti, macaroni, mac and cheese, macaroni cheese, lasagna, meal, "
        "prepared food, mac cheese"
    ),
    "sack": (
        "rice, flour, grain, quinoa, lentil, corn, couscous, dried bean, barley, oatmeal sack, cornmeal, "
        "bread crumb, pet food, dog food, cooking, baking"
    ),
    "bread": "bread, bagel, tortilla, toast, baguette, sandwich, pizza, pita, bread bakery",
    "apple": "fruit, apple, produce, vegetable, mango, berry, banana",
    "gift": "gift, gift basket, gift tray, sampler, gift card",
    "groceries": "grocery, food, pantry",
}

"""Which silhouette shows a product: by the words of its query, its path of categories or its title.

>>> from tests.envs.webshop.shelf import mug
>>> kind_of(mug(query="women's ankle boots"))
'boot'
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from arl_gym.envs.webshop.product import Product
from arl_gym.envs.webshop.site.pictures import beauty, electronics, fashion, garden, grocery
from arl_gym.envs.webshop.site.pictures.colours import words_of
from arl_gym.envs.webshop.site.pictures.pen import Pen

SHAPES: dict[str, Callable[[Pen], None]] = (
    fashion.SHAPES | garden.SHAPES | beauty.SHAPES | electronics.SHAPES | grocery.SHAPES
)
"""How each kind is drawn."""

CLOTHES = frozenset(fashion.SHAPES)
TEXTILES = frozenset(
    {"rug", "curtain", "shower curtain", "bed", "pillow", "blanket", "towel", "scarf", "pajamas", "socks"}
)
"""Kinds that often have a pattern that no word names."""
FURNITURE = frozenset(
    {"coffee table", "table", "desk", "stool", "chair", "bookshelf", "cabinet", "clock", "lamp", "speaker"}
)

# Of the phrases in a text that which ends last decides, and of those the longest.
_PHRASES = {
    "shoe": "shoe, loafer, moccasin, oxford, flat, slip on, boat shoe, footwear, brogue, mule, clog",
    "sneaker": "sneaker, running shoe, athletic shoe, tennis shoe, walking shoe, trainer, track spike, basketball shoe, "
    "road running, trail running, fashion sneaker, hiking shoe",
    "boot": "boot, bootie, ankle bootie",
    "sandal": "sandal, flip flop, espadrille, slide sandal, heeled sandal",
    "heel": "pump, heel, high heel, stiletto, wedge",
    "slipper": "slipper, house shoe",
    "tee": "shirt, t shirt, tee, tshirt, top, polo, henley, jersey, tunic, undershirt, active shirt, sleep shirt",
    "blouse": "blouse, button down shirt, dress shirt, button up shirt, casual button down, flannel shirt, button down",
    "sweater": "sweater, cardigan, pullover, sweatshirt, knitwear, turtleneck",
    "tank": "tank, tank top, cami, camisole, muscle shirt, vest top",
    "hoodie": "hoodie, hooded sweatshirt, fashion hoodie, hoodies sweatshirt, hoodie sweatshirt",
    "jacket": "jacket, puffer, parka, windbreaker, vest, outerwear, fleece, winter jacket, rain jacket",
    "coat": "coat, overcoat, trench, trench coat, blazer, suit, tuxedo, suit jacket, sport coat, peacoat",
    "dress": "dress, gown, sundress, jumpsuit, romper, costume, wedding dress, sweater dress, shirt dress",
    "skirt": "skirt, tutu, skort",
    "jeans": "jean, pant, trouser, denim, chino, slack, overall, sweatpant, jogger, cargo",
    "leggings": "legging, tight, yoga pant, stocking, pantyhose, capri",
    "shorts": "short, swim trunk, trunk, board short",
    "pajamas": "pajama, pyjama, sleepwear, nightwear, nightgown, loungewear, pajama set, lounge set, sleep lounge, nightdress",
    "robe": "robe, bathrobe, kimono",
    "bra": "bra, bralette, lingerie, sports bra",
    "briefs": "brief, underwear, panty, thong, boxer, boxer brief, boxer short, shapewear",
    "swimsuit": "swimsuit, bikini, swimwear, bathing suit, one piece swimsuit, tankini, bodysuit, leotard, cover up",
    "socks": "sock, hosiery, compression sock",
    "gloves": "glove, mitten",
    "scarf": "scarf, shawl, bandana, wrap",
    "cap": "cap, baseball cap, visor, snapback",
    "hat": "hat, sun hat, fedora, bucket hat, cowboy hat",
    "beanie": "beanie, skull cap, knit hat, winter hat",
    "belt": "belt, suspender",
    "tie": "tie, necktie, bow tie, neckwear",
    "sunglasses": "sunglass, eyeglass, eyewear, shade, goggle, reading glass, sun glass, spectacle",
    "bag": "bag, handbag, purse, tote, clutch, crossbody, satchel, shoulder bag, tote bag, travel bag, cosmetic bag, "
    "makeup bag, toiletry bag, gym bag, duffel, organizer bag, beach bag, laptop bag, diaper bag",
    "backpack": "backpack, rucksack, school bag, bookbag, daypack, luggage, suitcase",
    "wallet": "wallet, card holder, coin purse, money clip, card case",
    "watch": "watch, wristwatch, smartwatch, smart watch, fitness tracker, wrist watch",
    "necklace": "necklace, pendant, jewelry, jewellery, chain, brooch",
    "ring": "ring, bracelet, wedding band, bangle, anklet",
    "earrings": "earring, stud, hoop, piercing, body jewelry",
    "rug": "rug, carpet, area rug, runner, mat, doormat, bath mat, bath rug, yoga mat, floor mat, play mat",
    "coffee table": "coffee table, cocktail table, end table, side table, ottoman table, accent table",
    "table": "table, dining table, dining set, dining room set, console table, folding table, kitchen island, dining room, "
    "bar table, table set, kitchen dining room furniture, bench",
    "desk": "desk, computer desk, workstation, standing desk, writing desk, home office furniture, office furniture",
    "curtain": "curtain, drape, drapery, window treatment, valance, window panel, curtain panel, backdrop, tapestry, "
    "background",
    "shower curtain": "shower curtain, shower curtain liner, bath curtain, shower liner",
    "bed": "bed, bed sheet, bedding, sheet, sheet set, bedroom set, bed frame, duvet, duvet cover, comforter, headboard, "
    "bedroom furniture, bunk bed, bedspread, quilt, fitted sheet, pillowcase set, comforter set, coverlet, day bed",
    "mattress": "mattress, mattress topper, mattress pad, box spring, futon",
    "pillow": "pillow, cushion, throw pillow, pillow cover, pillowcase, bolster, sofa pillow, cushion cover, pillow sham",
    "blanket": "blanket, throw, throw blanket, fleece blanket, afghan",
    "towel": "towel, washcloth, bath towel, dish towel, hand towel, tea towel, napkin, tablecloth",
    "wall art": "wall art, poster, print, painting, canvas, picture, decal, photo frame, picture frame, wall decor, mural, "
    "wallpaper, wall sculpture, wall sticker, canvas print, artwork, photograph, sticker, home decor, window film",
    "floor lamp": "floor lamp, torchiere, standing lamp, tall lamp",
    "lamp": "lamp, table lamp, desk lamp, lampshade, lamp shade, lantern, night light, nightlight, bedside lamp",
    "chandelier": "chandelier, pendant light, ceiling light, ceiling fan, light fixture, island light, ceiling lamp, sconce, "
    "wall sconce, vanity light, lighting, lighting fixture, pendant lamp, wall light",
    "office chair": "office chair, desk chair, gaming chair, computer chair, task chair, swivel chair, home office chair, "
    "drafting chair, barber chair, salon chair, massage chair, massage table, salon equipment",
    "chair": "chair, dining chair, seat, rocking chair, kitchen chair, side chair, bar chair, patio chair",
    "sofa": "sofa, couch, loveseat, sectional, recliner, living room set, sofa set, accent chair, armchair, living room "
    "furniture, sofa bed, chaise, living room, sleeper sofa, sofa couch, slipcover, sofa cover",
    "stool": "stool, ottoman, bar stool, barstool, pouf, footstool, step stool, foot rest, footrest",
    "bookshelf": "bookshelf, bookcase, shelf, rack, bookshelve, shelve, shelving, etagere, storage rack, shoe rack, "
    "book shelf, ladder shelf, storage shelf, wall shelf, floating shelf, display shelf, stand, plant stand",
    "cabinet": "cabinet, dresser, nightstand, sideboard, buffet, wardrobe, chest, drawer, tv stand, credenza, vanity, "
    "hutch, armoire, file cabinet, console, entertainment center, tv console, bedside table, night stand, furniture, "
    "chest of drawer, bathroom vanity, wine cabinet, cupboard, makeup vanity, tv unit",
    "candle": "candle, wax melt, jar candle, tealight, scented candle, home fragrance, candleholder, candle holder, wick, "
    "reed diffuser, incense, pillar candle",
    "plant pot": "plant pot, planter, flower pot, pot, plant container, garden bed, window box, raised garden bed, planter pot",
    "plant": "plant, tree, artificial plant, artificial tree, flower, artificial flower, wreath, bouquet, garland, garden, "
    "fake plant, shrub, ficus, bonsai, succulent, christmas tree, greenery, grass",
    "mug": "mug, coffee mug, coffee cup, tumbler, travel mug, cup, teacup",
    "plate": "plate, dinnerware, dish, bowl, dinnerware set, flatware, cutlery, serving dish, tableware, fork, spoon, "
    "platter, tray, serving tray, placemat",
    "cup": "wine glass, goblet, drinking glass, glassware, glass, wine, cocktail mixer",
    "vase": "vase, urn",
    "clock": "clock, wall clock, alarm clock, timer",
    "mirror": "mirror, wall mirror, vanity mirror, makeup mirror, bathroom mirror, compact mirror, hand mirror",
    "blinds": "blind, window blind, roller shade, window shade, shutter, roman shade, cellular shade, roller blind",
    "basket": "basket, bin, storage basket, hamper, laundry basket, storage bin, laundry hamper, organizer, storage box, "
    "storage, container, crate, laundry bag, wash bag, storage bag, trash can, storage container",
    "pan": "pan, skillet, cookware, pot set, wok, frying pan, griddle, bakeware, grill, saucepan, cookware set",
    "house": "house, home, outdoor furniture, patio, lawn, door, window, shed",
    "cream jar": "moisturizer, cream, balm, body butter, hair mask, scrub, wax, pomade, hair gel, night cream, day cream, gel, "
    "body scrub, eye cream, face cream, hand cream, face moisturizer, mud, clay, hair treatment, styling product, "
    "treatment, dip powder, face scrub, hair wax, foundation powder, body cream, facial cream, ointment, petroleum jelly",
    "pump bottle": "shampoo, conditioner, body wash, soap dispenser, shower gel, hair wash, hand soap, mouthwash, hand wash, "
    "shampoo conditioner, bubble bath, hand sanitizer, cleanser, dispenser, face wash, body lotion, lotion pump",
    "tube": "tube, lotion, sunscreen, face wash cream, primer, foundation, concealer, bb cream, body milk, hand lotion, "
    "sun care, aloe, self tanner, hair dye, hair color, hair removal cream, depilatory, bleach, hair coloring",
    "lipstick": "lipstick, lip gloss, lip balm, lip stain, lip color, lip, lip crayon, liquid lipstick, chapstick, lip care, "
    "lip liner, gloss, lip tint, lip stick, lip butter, lip treatment",
    "makeup brushes": "makeup brush, brush set, cosmetic brush, powder brush, foundation brush, makeup brush set, makeup tool, "
    "eyeshadow brush, kabuki brush, makeup sponge, brush tool, cosmetic sponge, beauty tool, makeup brushe, sponge",
    "nail polish": "nail polish, gel polish, nail lacquer, nail art, nail, manicure, top coat, gel nail polish, nail care, "
    "false nail, press on nail, nail tip, nail gel, pedicure, nail file, nail clipper, base coat",
    "perfume": "perfume, cologne, fragrance, eau de parfum, body mist, eau de toilette, parfum, toilette, body spray",
    "toothbrush": "toothbrush, electric toothbrush, toothbrush head, flosser, water flosser, dental care, tongue scraper, "
    "oral care, floss, tongue cleaner, dental floss, interdental brush, sonic toothbrush, toothbrush holder",
    "toothpaste": "toothpaste, teeth whitening, teeth whitening kit, whitening, tooth powder, teeth whitener, teeth",
    "hair": "hair, hair extension, hairpiece, ponytail, ponytail extension, hair piece, hair weave, bundle, braiding hair, "
    "weave, hair care, hair topper, crochet hair, bun, hair weft, hair bundle, hair clip, hair tie, scrunchie",
    "wig": "wig, lace front, lace front wig, hair replacement wig, hair replacement, toupee, lace wig",
    "dropper": "serum, oil, beard oil, hair oil, essential oil, face oil, face serum, facial serum, beard care, tincture, "
    "hair serum, massage oil, toner, eye serum, beard serum, facial oil, body oil, retinol, beard balm, vitamin c serum, "
    "hair loss treatment, hair growth serum, hair regrowth treatment, hair loss product, ampoule, essence, extract",
    "sheet mask": "sheet mask, face mask, facial mask, mask, eye mask, clay mask, patch, peel off mask, eye patch, treatment mask",
    "hair dryer": "hair dryer, blow dryer, dryer, hairdryer, curling iron, hair straightener, straightener, flat iron, "
    "curler, styling tool, hot air styler, hair styling tool, hair curler, curling wand, hair roller",
    "soap": "soap, bar soap, bath bomb, shampoo bar, soap bar, soap dish, bath salt, bath accessory, loofah",
    "razor": "razor, shaver, shave, trimmer, shaving, electric shaver, hair removal, clipper, hair clipper, epilator, "
    "blade, hair trimmer, beard trimmer, electric razor, shaving cream, aftershave, tweezer, eyebrow razor",
    "hair brush": "hair brush, hairbrush, comb, detangler, detangling brush, paddle brush, brush, hair comb, bath brush, "
    "body brush, scalp massager, shower brush, massager, back scrubber",
    "mascara": "mascara, eyeliner, eyebrow, eyelash, false eyelash, brow, lash, eyebrow pencil, eye liner, brow gel, "
    "eyelash extension, lash serum, eyebrow gel, lash extension, eyelash glue, eyelash curler",
    "palette": "palette, eyeshadow, eye shadow, blush, makeup, bronzer, highlighter, face powder, powder, eyeshadow palette, "
    "makeup palette, contour, makeup set, cosmetic, makeup kit, compact powder, setting powder, body paint, glitter, eye makeup",
    "deodorant": "deodorant, antiperspirant, deodorant stick",
    "spray": "spray, hairspray, mist, spray bottle, setting spray, dry shampoo, hair spray, face mist, makeup remover, "
    "sun spray, room spray, bug spray, air freshener, tanning spray, micellar water, refillable container",
    "bottles": "skin care, skincare, bath, personal care, gift set, skin care set, travel bottle, skin care product, "
    "beauty, spa, bath set, face care, refillable bottle, travel container, bottle set, skin care kit",
    "headphones": "headphone, headset, over ear headphone, bluetooth headphone, gaming headset, headphones earbud",
    "earbuds": "earbud, earphone, in ear headphone, wireless earbud, earbud headphone, airpod, earbud case, hearing aid, ear bud",
    "phone case": "phone case, case, cell phone case, basic case, flip case, bumper, phone cover, mobile case, wallet case, "
    "iphone case, cover, holster, cases holster sleeve, sleeve, clear case, airpod case",
    "phone": "phone, smartphone, cell phone, mobile phone, iphone, unlocked cell phone, unlocked phone, galaxy, telephone, "
    "phone holder, phone mount, carrier cell phone",
    "screen protector": "screen protector, privacy screen, screen film, glass film, tempered glass, lens protector, screen guard",
    "cable": "cable, cord, hdmi cable, usb cable, adapter cable, ethernet cable, extension cord, power cord, coaxial cable, "
    "audio cable, charging cable, connector, wire, lightning cable, vga cable, patch cord, speaker cable, splitter",
    "power bank": "power bank, portable charger, battery case, portable power bank, battery pack, solar charger, external battery",
    "watch band": "watch band, smartwatch band, watch strap, watchband, wristband, strap, band, smart watch band, solo loop",
    "keyboard": "keyboard, computer keyboard, keyboard mouse, keypad, piano",
    "mouse": "mouse, mice, computer mouse, computer mice, trackball, gaming mouse, wireless mouse, mouse pad",
    "tripod": "tripod, monopod, selfie stick, camera tripod, light stand, gimbal, tripod head, tripods monopod, camera stand",
    "speaker": "speaker, sound bar, soundbar, bluetooth speaker, subwoofer, portable speaker, boombox, radio, music box, "
    "wireless speaker, clock radio, portable bluetooth speaker, microphone",
    "home theater": "home theater, home theater system, stereo system, audio system, receiver, surround sound, stereo, "
    "bookshelf speaker, av receiver, shelf system, amplifier, tower speaker, speaker system, blu ray player, dvd player",
    "webcam": "webcam, security camera, surveillance camera, dome camera, streaming camera, baby monitor, video doorbell, "
    "conference camera, ip camera, dash cam, bullet camera, nanny cam, surveillance, document camera, video surveillance",
    "memory card": "memory card, sd card, micro sd card, flash drive, usb flash drive, ssd, hard drive, flash memory, ram, "
    "compact flash card, memory, sim card, storage card, solid state drive, card reader, card",
    "camera": "camera, dslr, digital camera, lens, camcorder, photography, camera lens, flash, video camera, photo, film camera, "
    "action camera, camera photo, point and shoot, drone",
    "television": "tv, television, monitor, smart tv, display, video wall, computer monitor, projection screen, led tv, "
    "projector screen, tv mount, digital signage",
    "laptop": "laptop, notebook, computer, desktop, chromebook, pc, desktop computer, macbook, mini pc, tower, laptop computer, "
    "tower computer, gaming laptop, traditional laptop, gaming desktop, all in one computer, desktop pc",
    "tablet": "tablet, ipad, e reader, ereader, kindle, computer tablet, drawing tablet, tablet case",
    "charger": "charger, adapter, power adapter, wall charger, ac adapter, plug, power supply, wireless charger, outlet, "
    "charging station, car charger, power strip, surge protector, charging dock, dock, hub, usb hub, power cable, switch",
    "projector": "projector, video projector, mini projector, portable projector",
    "router": "router, modem, wifi, antenna, networking, signal booster, range extender, network switch, wireless router, "
    "cell phone signal booster, tv antenna, access point, walkie talkie, bluetooth adapter, two way radio",
    "remote": "remote, remote control, replacement remote, tv remote, universal remote, streaming media player, calculator",
    "battery": "battery, batterie, aaa battery, rechargeable battery, lithium battery, replacement battery, aa battery",
    "binoculars": "binocular, telescope, monocular, spotting scope, microscope, scope, binoculars scope, magnifier",
    "gamepad": "gamepad, game controller, controller, joystick, game console, video game, nintendo, game, toy, drum, guitar",
    "light": "light, bulb, light bulb, led light, string light, led strip, flashlight, ring light, lighting photography, "
    "led, light strip, photo light, flash light, softbox, solar light",
    "device": "electronic, electronics, gadget, player, mp3 player, gps, alarm, thermometer, scale, printer, turntable, "
    "video player, subwoofer amplifier, fan, humidifier, vacuum, portable dvd player, scanner, recorder, machine",
    "tea": "tea, green tea, matcha, herbal tea, tea bag, matcha powder, black tea, chai, tea sampler, oolong, tea set, kombucha",
    "coffee": "coffee, coffee bean, coffee pod, ground coffee, instant coffee, k cup, cold brew, espresso, whole bean coffee, "
    "cold brew coffee, coffee creamer, cocoa, hot chocolate, hot cocoa, protein powder, drink mix, shake mix",
    "granola bar": "granola bar, bar, protein bar, oat bar, nut bar, fruit bar, energy bar, snack bar, breakfast bar, nutrition bar, "
    "breakfast cereal bar, meal replacement bar, nutrition",
    "trail mix": "trail mix, nut, mixed nut, almond, cashew, seed, snack mix, nut mix, seed mix, pistachio, peanut, walnut, "
    "pecan, nut seed, macadamia, trail mixe, nuts seed, sunflower seed",
    "dried fruit": "dried fruit, raisin, dried mango, dried apricot, dried strawberry, fruit snack, freeze dried strawberry, "
    "fruit leather, date, prune, dried cranberry, freeze dried fruit, dried fruits raisin, fruit chip",
    "chips": "chip, potato chip, crisp, tortilla chip, snack, pretzel, snack food, cracker, kettle chip, pita chip, seaweed snack, "
    "cheese puff, veggie chip, pork rind, puff, rice cake, seaweed, salty snack",
    "sauce jar": "sauce, pasta sauce, pesto, salsa, marinara, marinara sauce, pickle, dip, relish, olive, mayonnaise, chutney, "
    "alfredo sauce, pizza sauce, bolognese sauce, spaghetti sauce, mustard, ketchup, gravy, tapenade, kimchi, sauerkraut",
    "honey": "honey, jam, jelly, nut butter, peanut butter, almond butter, preserve, fruit spread, marmalade, spread, ghee, butter",
    "hot sauce": "hot sauce, sriracha, buffalo sauce, chili oil, pepper sauce, wing sauce, soy sauce, bbq sauce, chili sauce, "
    "barbecue sauce, worcestershire sauce, dressing, salad dressing, marinade, fish sauce, teriyaki sauce",
    "oil": "olive oil, avocado oil, truffle oil, cooking oil, coconut oil, vinegar, garlic oil, cooking oil spray, syrup, "
    "balsamic vinegar, vegetable oil, sesame oil, maple syrup, salad oil, extra virgin olive oil, flavoring, coffee syrup",
    "chocolate": "chocolate, dark chocolate, chocolate bar, truffle, baking chocolate, fudge, cacao, chocolate truffle, "
    "candy chocolate bar, brownie, candies chocolate bar, chocolate candy",
    "popcorn": "popcorn, popped corn, popcorn kernel, popcorn tin, corn snack, microwave popcorn, popcorn seasoning",
    "spice": "spice, seasoning, curry powder, rub, salt, pepper, taco seasoning, spice blend, dry rub, herb, seasoning mix, "
    "garlic powder, cinnamon, mixed spices seasoning, spice mix, sweetener, sugar, baking powder, food coloring, steak rub, "
    "spice gift set, sprinkle, yeast, stevia, bouillon, vanilla extract, seasoning blend",
    "can": "can, canned, soup, tuna, soda, energy drink, beer, sparkling water, canned food, tomato, bean, chili, soft drink, "
    "broth, canned fish, sardine, cola, canned bean, stew, seafood, fish, baked bean, packaged fish, salmon, sodas soft drink",
    "bottle": "water, drink, beverage, water bottle, bottle, sports drink, bottled beverage, smoothie, lemonade, cocktail, "
    "shake, protein shake, protein drink, coffee drink, juice drink, iced tea",
    "cookies": "cookie, biscuit, wafer, shortbread, pastry, donut, muffin, cookie gift, cookie tin, bakery, graham cracker",
    "candy": "candy, gummy, lollipop, mint, gum, chewing gum, hard candy, licorice, marshmallow, jelly bean, gummy candy, sweet, "
    "caramel, taffy, breath mint, toffee, cotton candy",
    "cake": "cake, cupcake, cake topper, cupcake topper, cake decorating, party supply, cake mix, frosting, dessert, pie, "
    "cake decoration, cupcake pick, birthday decoration, baking mix, pudding, topper, toppers, cheesecake, party decoration",
    "cereal": "cereal, granola, oatmeal, oat, muesli, breakfast cereal, breakfast, pancake mix, breakfast food, waffle",
    "cheese": "cheese, cheddar, dairy, parmesan, cream cheese, cheese gift, yogurt, mozzarella",
    "meat": "meat, beef, jerky, beef jerky, bacon, sausage, chicken, ham, turkey, steak, pork, salami, meat stick, meat snack, "
    "jerkies, jerky dried meat, deli meat",
    "carton": "milk, juice, almond milk, oat milk, coconut milk, soy milk, broth carton, creamer, coconut water, egg, ice cream, "
    "non dairy milk, milk substitute, fruit juice, baby formula, plant milk",
    "noodles": "noodle, pasta, ramen, spaghetti, macaroni, instant noodle, mac and cheese, macaroni cheese, lasagna, meal, "
    "ramen noodle, prepared food, pasta noodle, frozen meal, rice noodle",
    "sack": "rice, flour, grain, quinoa, lentil, corn, couscous, dried bean, bread flour, almond flour, barley, bulk rice, "
    "rices grain, oatmeal sack, cornmeal, bread crumb, coconut flour, pet food, dog food",
    "bread": "bread, bagel, bun bread, tortilla, toast, baguette, sandwich, sandwich bread, pizza, pita bread, pita",
    "apple": "fruit, apple, produce, vegetable, fresh fruit, fruit vegetable, mango, berry, fruits vegetable, banana",
    "gift": "gift, gift basket, food gift, gourmet gift, gift box, snack gift, gourmet gift basket, gift tray, sampler, "
    "chocolate gift, gift card",
    "groceries": "grocery, food, pantry, pantry staple, gourmet food, grocery gourmet food",
}
_BY_CATEGORY = {
    "beauty": "bottles",
    "electronics": "device",
    "fashion": "tee",
    "garden": "house",
    "grocery": "groceries",
}
_ENDS = re.compile(r"\b(?:for|with|of|in|by|from|to|without)\b|[|(),;:–—/]| - ")
_LONGEST = 4


def kind_of(product: Product) -> str:
    """Return the kind whose silhouette shows a product, "parcel" if nothing tells."""
    path = re.split("[›>]", product.product_category[-400:])
    texts = (*_parts(product.query), *reversed(path), *_parts(product.title))
    found = (kind for text in texts if (kind := _kind_in(text)))
    return next(found, None) or _BY_CATEGORY.get(product.category, "parcel")


def _parts(text: str) -> list[str]:
    """Return what a text says before, between and after words such as "for"."""
    return _ENDS.split(text[:200].lower())


@lru_cache(maxsize=4096)
def _kind_in(text: str) -> str | None:
    words = [_singular(word) for word in words_of(text)]
    for end in range(len(words), 0, -1):
        for start in range(max(0, end - _LONGEST), end):
            if kind := _KINDS.get(tuple(words[start:end])):
                return kind
    return None


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("shes", "ches", "xes", "sses")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _phrases() -> Iterator[tuple[tuple[str, ...], str]]:
    for kind, phrases in _PHRASES.items():
        for phrase in phrases.split(","):
            yield tuple(map(_singular, phrase.split())), kind


_KINDS = dict(_phrases())

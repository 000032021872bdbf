"""WebShop as a site: the pages of the text environment, for a browser.

Everything a page depends on is in its address, but for the goal of the visit, what was opened before, and
whether something has been bought. Needs no JavaScript and asks nothing of another host.

>>> app = create_app(GeneratedTasks("mini", 200))  # doctest: +SKIP
"""

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from flask import Flask, Response, abort, jsonify, redirect, render_template, request
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response as BaseResponse

from arl_gym.envs.webshop.session import Session
from arl_gym.envs.webshop.site import views
from arl_gym.envs.webshop.site.address import address, read_place
from arl_gym.envs.webshop.site.episodes import episodes_blueprint
from arl_gym.envs.webshop.site.pictures import picture_png
from arl_gym.envs.webshop.site.recorded import Recorded
from arl_gym.envs.webshop.site.visits import MAX_VISITS, Visit, Visits
from arl_gym.envs.webshop.tasks import Tasks, find_goal

_GOALS_SHOWN = 12
_MAX_FORM_BYTES = 1 << 16
_KEPT_S = 3600
"""How long a browser may keep pictures and style sheets."""
_PICTURE_PX = 320
_POLICY = (
    "default-src 'none'; img-src 'self'; style-src 'self'; form-action 'self'; "
    "frame-src 'self'; frame-ancestors 'self'; base-uri 'none'"
)


def create_app(
    tasks: Tasks,
    *,
    options: Mapping[str, Any] | None = None,
    max_visits: int = MAX_VISITS,
    episodes: Sequence[tuple[str, Recorded]] = (),
) -> Flask:
    """Return the site of a shop.

    Args:
        tasks: The shop and its goals.
        options: Keyword arguments of every `Session`.
        max_visits: Visits that are kept; the longest unused one ends for a new one.
        episodes: Recorded ones to look at, below `/episodes`, each with the name of its file.
    """
    app = Flask(__name__)
    app.config["MAX_CONTENT_LENGTH"] = _MAX_FORM_BYTES
    app.config["SEND_FILE_MAX_AGE_DEFAULT"] = _KEPT_S
    app.jinja_env.filters["exact"] = views.exact
    shop, visits, options = tasks.store, Visits(max_visits), dict(options or {})
    Session(shop, **options)  # a wrong option should say so now
    if episodes:
        app.register_blueprint(episodes_blueprint(tasks, options, episodes))

    def find(id: str) -> Visit:
        visit = visits.find(id)
        if visit is None:
            abort(404, "There is no such visit, or it has ended because many others have begun since.")
        return visit

    @app.get("/")
    def home() -> bytes:
        split = request.args.get("split", tasks.splits[0])
        if split not in tasks.splits:
            abort(404, f"There is no split {split!r}.")
        ids = tasks.ids(split, None)
        first = request.args.get("first", 0, type=int)
        if first not in range(len(ids)):
            abort(404, f"The split {split!r} has {len(ids)} goals, counted from 0.")
        goals = [(id, tasks.goal(id).instruction) for id in ids[first : first + _GOALS_SHOWN]]
        return _html(
            "home.html", splits=tasks.splits, split=split, goals=goals, first=first, total=len(ids),
            step=_GOALS_SHOWN, n_products=len(shop), dataset=shop.dataset, n_episodes=len(episodes),
        )  # fmt: skip

    @app.get("/about")
    def about() -> Response:
        return jsonify(content_hash=shop.content_hash, dataset=shop.dataset, options=options)

    @app.post("/visits")
    def begin() -> BaseResponse:
        task_id = request.form.get("task_id", "").strip()
        goal = find_goal(tasks, task_id)
        if goal is None:
            abort(404, f"There is no goal {task_id!r}.")
        session = Session(shop, **options)
        visit = visits.start(session, task_id, with_parts="with_parts" in request.form)
        session.begin(goal, visit.id)
        return redirect(address("search", session.place), 303)

    @app.get("/s/<id>/<page>")
    def show(id: str, page: str) -> bytes | BaseResponse:
        visit = find(id)
        with visit.lock:
            session = visit.session
            if session.page == "done":
                return _page(visit) if page == "done" else redirect(address("done", session.place), 303)
            _go(session, page, request.query_string.decode("latin-1"))
            return _page(visit)

    @app.post("/s/<id>/buy")
    def buy(id: str) -> BaseResponse:
        visit = find(id)
        with visit.lock:
            session = visit.session
            if session.page != "done":
                _go(session, "item", request.query_string.decode("latin-1"))
                session.buy()
            return redirect(address("done", session.place), 303)

    @app.get("/picture.png")
    def picture() -> Response:
        place = read_place("", request.query_string.decode("latin-1"))
        number = None if place is None else shop.number(place.asin)
        if place is None or number is None:
            abort(404, "There is no such product.")
        response = Response(
            picture_png(shop.product(number), place.options, size=_PICTURE_PX), mimetype="image/png"
        )
        response.cache_control.max_age = _KEPT_S
        return response

    @app.errorhandler(HTTPException)
    def wrong(error: HTTPException) -> tuple[bytes, int]:
        code, token = error.code or 500, token_hex(8)
        shown = _html("error.html", token=token, code=code, name=error.name, why=error.description)
        return shown, code

    @app.after_request
    def protect(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        if not response.cache_control.max_age:
            response.headers["Cache-Control"] = "no-store"
        return response

    return app


def _go(session: Session, page: str, query: str) -> None:
    place = read_place("", query)
    if place is None or not session.go(
        page, keywords=place.keywords, page_number=place.page_number, asin=place.asin, options=place.options
    ):
        abort(404, "No link of this shop leads here.")


def _page(visit: Visit) -> bytes:
    visit.n_pages += 1
    template, shown = views.page(visit.session, with_parts=visit.with_parts)
    return _html(template, token=f"{visit.id}-{visit.n_pages}", **shown)


def _html(template: str, **shown: Any) -> bytes:
    # Halves of characters, which JSON can hold, have no place in UTF-8.
    return render_template(template, **shown).encode(errors="replace")

"""One player at the game server, as a thread sees it that sends orders and reads what follows."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

from poke_env.battle import Battle
from poke_env.data import GenData
from poke_env.ps_client import AccountConfiguration, PSClient, ServerConfiguration

from rlprof import profile
from rlprof.errors import RlprofError

LOGIN_SECONDS = 60
ANSWER_SECONDS = 60
NOWHERE = "http://127.0.0.1:9/"
"""Where passwords are checked: players have none, so nobody is asked."""
SILENT = logging.CRITICAL + 1

Message = list[list[str]]


class Seat:
    """poke-env's client does the talking, on its own thread; what it hears waits here for the environment's thread,
    which makes a `Battle` of it."""

    def __init__(self, name: str, address: str, battle_format: str) -> None:
        self.name = name
        self.battle: Battle | None = None
        self._address = address
        self._format = battle_format
        self._generation = GenData.from_format(battle_format).gen
        # Unlike other queues, these block outside of Python: for rlprof an environment that the server works for works.
        self._inbox: SimpleQueue[Message | None] = SimpleQueue()
        self._entered: SimpleQueue[bool | None] = SimpleQueue()
        self._challenged: SimpleQueue[bool | None] = SimpleQueue()
        self._client = PSClient(
            AccountConfiguration(name, None),
            server_configuration=ServerConfiguration(address, NOWHERE),
            on_battle_message=self._receive,
            on_challenge_request=self._receive_challenge,
            log_level=SILENT,
            open_timeout=LOGIN_SECONDS,
            start_listening=False,
        )
        self._listening = self._do(self._client.listen())  # type: ignore[no-untyped-call]  # poke-env's
        self._listening.add_done_callback(lambda _: self._hang_up())

    def log_in(self) -> None:
        """Wait until the server has let the player in."""
        entered = self._do(self._client.logged_in.wait())
        entered.add_done_callback(lambda _: self._entered.put(True))
        try:
            let_in = self._entered.get(timeout=LOGIN_SECONDS)
        except Empty:
            let_in = None
        if let_in is None:
            raise RlprofError(
                f"no player could enter the game server at {self._address}; is a Pokemon Showdown running there with"
                " --no-security?"
            )

    def close(self) -> None:
        if not self._listening.done():
            self._do(self._client.stop_listening())  # type: ignore[no-untyped-call]

    def challenge(self, other: Seat) -> None:
        """A battle begins between the two."""
        self.battle = other.battle = None
        self._do(self._client.challenge(other.name, self._format, None))
        self._get(other._challenged)
        other._do(other._client.accept_challenge(self.name, None))

    def read(self) -> bool:
        """Until the server wants something of this or the other player, or the battle has ended. Returns whether this
        player has to decide."""
        asked = None
        while asked is None:
            with profile("server_reply"):
                message = self._get(self._inbox)
            with profile("message_parsing"):
                asked = self._parse(message)
        return asked

    def order(self, order: str) -> None:
        self._say(f"/choose {order}")

    def give_up(self) -> None:
        self._say("/forfeit")

    def leave(self) -> None:
        self._say("/leave")

    def _parse(self, message: Message) -> bool | None:
        """None: there is more to read."""
        tag = message[0][0].removeprefix(">")
        asked = None
        for words in message[1:]:
            kind = words[1] if len(words) > 1 else ""
            if kind == "init" and self.battle is None:
                self.battle = Battle(tag, self.name, self._client.logger, self._generation)
            elif self.battle is None or self.battle.battle_tag != tag:
                return None  # of a battle that is over
            elif kind == "request" and words[2]:
                request: dict[str, Any] = json.loads("|".join(words[2:]))
                self.battle.parse_request(request)
                asked = None if request.get("update") else not request.get("wait", False)
            elif kind == "win":
                self.battle.won_by(words[2])
                asked = False
            elif kind == "tie":
                self.battle.tied()  # type: ignore[no-untyped-call]
                asked = False
            elif kind == "error":  # what only the server knows forbids it: a hidden trap
                self.order("default")
            elif kind not in ("", "t:", "expire", "uhtmlchange", "bigerror", "deinit", "request"):
                self.battle.parse_message(words)
        return asked

    def _say(self, text: str) -> None:
        assert self.battle is not None
        self._do(self._client.send_message(text, self.battle.battle_tag))

    def _do(self, coroutine: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop)

    def _get(self, queue: SimpleQueue[Any]) -> Any:
        try:
            item = queue.get(timeout=ANSWER_SECONDS)
        except Empty:
            raise RlprofError(
                f"the game server at {self._address} has not answered for {ANSWER_SECONDS} s;"
                " see whether it still runs, and train again"
            ) from None
        if item is None:
            self._hang_up()  # whoever reads next is to hear of it, too
            raise RlprofError(
                f"the game server at {self._address} has closed the connection in mid-battle;"
                " see whether it still runs, and train again"
            )
        return item

    def _hang_up(self) -> None:
        for queue in (self._inbox, self._entered, self._challenged):
            queue.put(None)

    async def _receive(self, message: Message) -> None:
        self._inbox.put(message)

    async def _receive_challenge(self, words: list[str]) -> None:
        # Both hear of it; the one who is challenged is told by whom.
        if words[2].strip().lower() != self.name and len(words) >= 6 and words[5] == self._format:
            self._challenged.put(True)

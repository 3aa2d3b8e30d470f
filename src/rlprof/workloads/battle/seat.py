"""One player on the game server, for a thread that sends orders and reads the replies."""

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
"""Address of the login server. Unused, because players have no passwords."""
SILENT = logging.CRITICAL + 1

Message = list[list[str]]


class Seat:
    """poke-env's client communicates with the server on its own thread. Its messages wait here for the environment's
    thread, which builds a `Battle` from them."""

    def __init__(self, name: str, address: str, battle_format: str) -> None:
        self.name = name
        self.battle: Battle | None = None
        self._address = address
        self._format = battle_format
        self._generation = GenData.from_format(battle_format).gen
        # Unlike other queues, these block outside of Python, so that waiting for the server counts as environment work.
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
        """Wait until the server has accepted the player."""
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
        """Begin a battle between the two players."""
        self.battle = other.battle = None
        self._do(self._client.challenge(other.name, self._format, None))
        self._get(other._challenged)
        other._do(other._client.accept_challenge(self.name, None))

    def read(self) -> bool:
        """Read until the server requests a decision from either player, or the battle has ended. Returns True if this
        player has to decide."""
        decides = None
        while decides is None:
            with profile("server_reply"):
                message = self._get(self._inbox)
            with profile("message_parsing"):
                decides = self._parse(message)
        return decides

    def send(self, command: str) -> None:
        """Send a command in the battle: `/choose ORDER`, `/forfeit` or `/leave`."""
        assert self.battle is not None
        self._do(self._client.send_message(command, self.battle.battle_tag))

    def _parse(self, message: Message) -> bool | None:
        """True if this player has to decide, None if there is more to read."""
        tag = message[0][0].removeprefix(">")
        decides = None
        for words in message[1:]:
            kind = words[1] if len(words) > 1 else ""
            if kind == "init" and self.battle is None:
                self.battle = Battle(tag, self.name, self._client.logger, self._generation)
            elif self.battle is None or self.battle.battle_tag != tag:
                return None  # from a battle that has ended
            elif kind == "request" and words[2]:
                request: dict[str, Any] = json.loads("|".join(words[2:]))
                self.battle.parse_request(request)
                decides = None if request.get("update") else not request.get("wait", False)
            elif kind == "win":
                self.battle.won_by(words[2])
                decides = False
            elif kind == "tie":
                self.battle.tied()  # type: ignore[no-untyped-call]
                decides = False
            elif kind == "error":  # forbidden by something that only the server knows, such as a hidden trap
                self.send("/choose default")
            elif kind not in ("", "t:", "expire", "uhtmlchange", "bigerror", "deinit", "request"):
                self.battle.parse_message(words)
        return decides

    def _do(self, coroutine: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._client.loop)

    def _get(self, queue: SimpleQueue[Any]) -> Any:
        problem = "closed the connection during a battle"
        try:
            item = queue.get(timeout=ANSWER_SECONDS)
        except Empty:
            item, problem = None, f"did not answer for {ANSWER_SECONDS} s"
        if item is None:
            self._hang_up()  # the next reader must find the end, too
            raise RlprofError(
                f"the game server at {self._address} {problem}; check that it still runs, then train again"
            )
        return item

    def _hang_up(self) -> None:
        for queue in (self._inbox, self._entered, self._challenged):
            queue.put(None)

    async def _receive(self, message: Message) -> None:
        self._inbox.put(message)

    async def _receive_challenge(self, words: list[str]) -> None:
        # Both get the message. The challenged player's names the challenger.
        if words[2].strip().lower() != self.name and len(words) >= 6 and words[5] == self._format:
            self._challenged.put(True)

"""Log in on an encrypted connection: the host's key first, then ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramiko import AuthenticationException, BadAuthenticationType, SSHException

from comborun.amounts import several
from comborun.errors import HostError
from comborun.remote.ssh.errors import no_key
from comborun.remote.ssh.host_keys import keys_of, verify
from comborun.remote.ssh.keys import Agent, Candidate, KeyFiles, candidates

if TYPE_CHECKING:
    from paramiko import PKey, Transport

    from comborun.remote.ssh.config import Target

AUTH_S = 30.0
_RSA = ("rsa-sha2-512", "rsa-sha2-256")


def handshake(transport: Transport, target: Target, *, accept_new: bool) -> tuple[str, ...]:
    """Encrypt the connection and make sure that the host is the right one; returns warnings."""
    known = keys_of(target)
    _prefer(transport, {key.type for key in known if not key.marker})
    # paramiko says nothing when this is over, so its own deadlines for the banner and for the keys come first
    transport.start_client(timeout=2 * target.connect_timeout + 1)
    blob = transport.get_remote_server_key().asbytes()
    return verify(target, known, blob, accept_new=accept_new)


def _prefer(transport: Transport, types: set[str]) -> None:
    """Ask for the kinds of key that we know, so that a host with several shows one that can be checked."""
    wanted = types | (set(_RSA) if "ssh-rsa" in types else set())
    options = transport.get_security_options()
    options.key_types = sorted(options.key_types, key=lambda name: name not in wanted)


def login(transport: Transport, target: Target, files: KeyFiles) -> None:
    """Offer keys until one is accepted. Raises HostError that names all that were tried."""
    agent, remark = _open_agent(target)
    try:
        _offer_all(transport, target, agent.get_keys() if agent else (), files, remark)
    finally:
        if agent:
            agent.close()


def _open_agent(target: Target) -> tuple[Agent | None, str]:
    if not target.agent:
        return None, "no ssh agent"
    try:
        agent = Agent(target.agent)
    except (OSError, SSHException) as error:
        return None, f"the ssh agent at {target.agent} does not answer: {error}"
    count = len(agent.get_keys())
    return agent, f"an ssh agent with {several(count, 'key')}"


def _offer_all(transport: Transport, target: Target, agent_keys: tuple[PKey, ...], files: KeyFiles, agent: str) -> None:
    tried: list[str] = []
    allowed: tuple[str, ...] = ()
    for candidate in candidates(target, agent_keys, files, tried):
        try:
            if _offer(transport, target, candidate):
                return
        except BadAuthenticationType as error:
            allowed = tuple(error.allowed_types)
            break
        except AuthenticationException:
            if not transport.is_active():
                tried.append(f"{candidate.name}: the host hung up, perhaps for too many keys; see IdentitiesOnly")
                break
            tried.append(f"{candidate.name}: refused")
        except (SSHException, ValueError) as error:
            if not transport.is_active():
                raise
            tried.append(f"{candidate.name}: {error}")
    raise no_key(target, tried, allowed, agent)


def _offer(transport: Transport, target: Target, candidate: Candidate) -> bool:
    further = transport.auth_publickey(target.user, candidate.key)
    if further:
        raise HostError(
            f"{target.name} accepted {candidate.name} and wants a second factor: {', '.join(further)}",
            "--transport openssh can give it",
        )
    return transport.is_authenticated()

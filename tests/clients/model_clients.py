"""Published clients that need a model: how each is set up and started, and what it does by itself.

``connect`` is the client's name for ``toolsrv connect``; "" for one that is set up by hand. ``before`` writes the client's own configuration, as its user has it, before our entry
comes. ``shown`` says which half of a result reaches the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tests.clients.installed import Package
from tests.clients.model_protocols import MODEL
from tests.clients.places import Home

PROMPT = "What is the capital of Peru?"
Half = Literal["text", "data", "both"]


@dataclass(frozen=True)
class Start:
    """The words after the program, and the variables it needs."""

    arguments: tuple[str, ...]
    env: dict[str, str]


@dataclass(frozen=True)
class ModelClient:
    """One client. ``prefix`` is what it puts before the names of our tools."""

    package: Package
    title: str
    prefix: str
    shown: Half
    start: Callable[[str], Start]
    before: Callable[[Home, str], None] = lambda _home, _url: None
    connect: str = ""
    http: bool = False
    trust: Callable[[Home], dict[str, str]] | None = None
    """Lets the client read a project's file, as its user would, and returns variables it needs."""
    first: tuple[str, ...] = ()
    """Words of a command that is run once before, as its user does; ``URL`` stands for the model."""


def _claude(url: str) -> Start:
    env = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "MCP_CONNECTION_NONBLOCKING": "0",  # the first turn waits for the servers
    }
    return Start(("-p", PROMPT, "--allowedTools", "mcp__toolsrv"), env)


def _trust_claude(home: Home) -> dict[str, str]:
    projects = {str(home.work): {"hasTrustDialogAccepted": True}}
    home.write(".claude.json", {"projects": projects})
    home.write("work/.claude/settings.local.json", {"enabledMcpjsonServers": ["toolsrv"]})
    return {}


def _before_codex(home: Home, url: str) -> None:
    home.write(
        ".codex/config.toml",
        f'model = "{MODEL}"\nmodel_provider = "own"\n\n[model_providers.own]\nname = "own"\n'
        f'base_url = "{url}/v1"\nwire_api = "responses"\n',
    )


def _trust_codex(home: Home) -> dict[str, str]:
    with (home.folder / ".codex" / "config.toml").open("a") as file:
        file.write(f'\n[projects."{home.work}"]\ntrust_level = "trusted"\n')
    return {}


def _codex(_: str) -> Start:
    flags = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    return Start(("exec", *flags, PROMPT), {})


def _before_gemini(home: Home, _: str) -> None:
    home.write(".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})


def _gemini(url: str) -> Start:
    env = {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",  # in other folders it starts no server
    }
    return Start(("-p", PROMPT, "--yolo", "-m", "gemini-2.5-flash"), env)


def _qwen(url: str) -> Start:
    env = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": MODEL}
    return Start(("-p", PROMPT, "--yolo", "--auth-type", "openai"), env)


def _before_opencode(home: Home, url: str) -> None:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "own",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {MODEL: {"name": MODEL}},
    }
    settings: dict[str, Any] = {"model": f"own/{MODEL}", "provider": {"own": provider}}
    home.write(".config/opencode/opencode.json", settings)


def _opencode(_: str) -> Start:
    return Start(("run", PROMPT), {"OPENCODE_DISABLE_AUTOUPDATE": "1"})


def _copilot(url: str) -> Start:
    env = {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": MODEL,
        "COPILOT_OFFLINE": "true",  # no login
    }
    return Start(("-p", PROMPT, "--allow-all-tools"), env)


def _cline(_: str) -> Start:
    return Start(("-P", "openai", "-m", MODEL, PROMPT), {})


def _before_continue(home: Home, url: str) -> None:
    """Paste what ``toolsrv connect continue`` shows into the file with the model."""
    shown = home.toolsrv("connect", "continue").output
    servers = shown[shown.index("mcpServers:") :]
    home.write(
        "work/own.yaml",
        f"name: own\nversion: 1.0.0\nschema: v1\nmodels:\n- name: {MODEL}\n  provider: openai\n"
        f"  model: {MODEL}\n  apiBase: {url}/v1\n  apiKey: none\n  roles: [chat]\n"
        f"  capabilities: [tool_use]\n{servers}",
    )


def _continue(_: str) -> Start:
    return Start(("-p", PROMPT, "--auto", "--config", "own.yaml"), {})


def _trusted(_: Home) -> dict[str, str]:
    """Add nothing: the folder is trusted already."""
    return {}


MODEL_CLIENTS = (
    ModelClient(
        Package("@anthropic-ai/claude-code", "2.1.332", "claude"), "Claude Code",
        "mcp__toolsrv__", "data", _claude, connect="claude-code", http=True,
        trust=_trust_claude,
    ),
    ModelClient(
        Package("@openai/codex", "0.171.0", "codex"), "Codex",
        "mcp__toolsrv__", "data", _codex, _before_codex, connect="codex", http=True,
        trust=_trust_codex,
    ),
    ModelClient(
        Package("@google/gemini-cli", "0.61.0", "gemini"), "Gemini CLI",
        "mcp_toolsrv_", "text", _gemini, _before_gemini, connect="gemini", http=True,
        trust=_trusted,
    ),
    ModelClient(
        Package("opencode-ai", "1.18.33", "opencode"), "opencode",
        "toolsrv_", "text", _opencode, _before_opencode, connect="opencode", http=True,
        trust=_trusted,
    ),
    ModelClient(
        Package("@github/copilot", "1.0.102", "copilot"), "Copilot CLI",
        "toolsrv-", "both", _copilot, connect="copilot", http=True,
        trust=lambda _: {"GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP": "true"},
    ),
    ModelClient(
        Package("cline", "3.0.65", "cline"), "Cline CLI",
        "toolsrv__", "both", _cline, connect="cline", http=True,
        first=("auth", "-p", "openai", "-k", "none", "-m", MODEL, "-b", "URL/v1"),
    ),
    ModelClient(
        Package("@qwen-code/qwen-code", "0.24.4", "qwen"), "Qwen Code",
        "mcp__toolsrv__", "both", _qwen, connect="qwen", http=True,
        trust=_trusted,
    ),
    ModelClient(
        Package("@continuedev/cli", "1.5.47", "cn"), "Continue CLI",
        "", "text", _continue, _before_continue,
    ),
)  # fmt: skip

from pathlib import Path

import pytest

from fullrank.errors import Invalid
from fullrank.settings import default_home, read_settings


def test_flags_win_over_variables_over_the_file_over_defaults(tmp_path: Path) -> None:
    (tmp_path / "fullrank.toml").write_text('port = 1\nimages = "strict"\ncpu_overcommit = 2\n')
    environment = {"FULLRANK_HOME": str(tmp_path), "FULLRANK_PORT": "2", "FULLRANK_CPU_OVERCOMMIT": "3"}
    settings = read_settings({"port": "3", "listen": None}, environment)
    assert (settings.port, settings.cpu_overcommit, settings.images) == (3, 3.0, "strict")
    assert (settings.listen, settings.home) == ("127.0.0.1", tmp_path)


def test_every_complaint_is_told_at_once_with_its_source(tmp_path: Path) -> None:
    (tmp_path / "fullrank.toml").write_text('prot = 7443\nimages = "never"\n')
    environment = {"FULLRANK_HOME": str(tmp_path), "FULLRANK_CPU_OVERCOMMIT": "0"}
    with pytest.raises(Invalid) as caught:
        read_settings({"port": "99999"}, environment)
    fields = [cause.field for cause in caught.value.causes]
    assert fields == [
        f"{tmp_path}/fullrank.toml: prot",
        "--port",
        "FULLRANK_CPU_OVERCOMMIT",
        f"{tmp_path}/fullrank.toml: images",
    ]


@pytest.mark.parametrize(
    ("environment", "home"),
    [
        ({"FULLRANK_HOME": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_STATE_HOME": "/b", "HOME": "/c"}, "/b/fullrank"),
        ({"HOME": "/c"}, "/c/.local/state/fullrank"),
    ],
)
def test_the_home_is_where_state_belongs(environment: dict[str, str], home: str) -> None:
    assert default_home(environment) == Path(home)

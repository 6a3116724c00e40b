import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from fullrank.controlplane.pki import LIFETIME, Credentials, credentials

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def contents(found: Credentials) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in found.ca.parent.iterdir()}


def test_everything_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    made = credentials(tmp_path / "pki", NOW)
    assert {path.stat().st_mode & 0o777 for path in made.ca.parent.iterdir()} == {0o600}
    assert made.ca.parent.stat().st_mode & 0o777 == 0o700
    before = contents(made)
    assert credentials(tmp_path / "pki", NOW + timedelta(days=1)) == made
    assert contents(made) == before


def test_certificates_are_renewed_before_they_expire_and_the_token_stays(tmp_path: Path) -> None:
    made = credentials(tmp_path, NOW)
    before = contents(made)
    renewed = credentials(tmp_path, NOW + LIFETIME - timedelta(days=30))
    assert renewed.token == made.token
    assert all(contents(renewed)[name] != before[name] for name in before if name.endswith(".crt"))


def test_a_new_address_makes_a_new_server_certificate_only(tmp_path: Path) -> None:
    before = contents(credentials(tmp_path, NOW))
    after = contents(credentials(tmp_path, NOW, ["192.0.2.7", "gpu-box"]))
    assert {name for name in after if after[name] != before[name]} == {"server.crt", "server.key"}
    names = x509.load_pem_x509_certificate(after["server.crt"]).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert "gpu-box" in names.value.get_values_for_type(x509.DNSName)
    assert "192.0.2.7" in map(str, names.value.get_values_for_type(x509.IPAddress))
    assert contents(credentials(tmp_path, NOW, ["192.0.2.7"])) == after


def test_what_is_broken_or_anothers_is_made_anew(tmp_path: Path) -> None:
    made = credentials(tmp_path / "a", NOW)
    made.server_key.write_text("not a key")
    made.client_certificate.write_bytes(credentials(tmp_path / "b", NOW).client_certificate.read_bytes())
    mended = credentials(tmp_path / "a", NOW)
    mended.server_context()
    context = ssl.create_default_context(cafile=str(mended.ca))
    context.load_cert_chain(mended.client_certificate, mended.client_key)

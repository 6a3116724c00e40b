"""Who may come in: the home's own certificate authority, the certificates it issues, and a bearer token.

Everything lies in one folder, 0600, is made once, and is made again well before it expires or when the server
listens at an address its certificate does not name.
"""

import ipaddress
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from ssl import CERT_OPTIONAL, PROTOCOL_TLS_SERVER, SSLContext

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=3650)
RENEW_BEFORE = timedelta(days=90)
NAMES = (
    "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local", "127.0.0.1", "::1",
)  # fmt: skip
USER, GROUP = "fullrank-admin", "system:masters"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where the keys and certificates lie, and the token itself."""

    ca: Path
    server_certificate: Path
    server_key: Path
    client_certificate: Path
    client_key: Path
    token: str

    def server_context(self) -> SSLContext:
        """TLS for the listener; a client may show a certificate of ours instead of the token."""
        context = SSLContext(PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server_certificate, self.server_key)
        context.load_verify_locations(self.ca)
        context.verify_mode = CERT_OPTIONAL
        return context


def credentials(folder: Path, now: datetime, addresses: Iterable[str] = ()) -> Credentials:
    """The folder's credentials, making what is missing, about to expire or short of an address."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    names = tuple(dict.fromkeys((*NAMES, *(address for address in addresses if address))))
    found = Credentials(
        ca=folder / "ca.crt",
        server_certificate=folder / "server.crt",
        server_key=folder / "server.key",
        client_certificate=folder / "client.crt",
        client_key=folder / "client.key",
        token=_token(folder / "token"),
    )
    authority = _Authority.kept(folder, now)
    if not _serves(found.server_certificate, found.server_key, authority, names, now):
        authority.issue(found.server_certificate, found.server_key, _server(names), now)
    if not _serves(found.client_certificate, found.client_key, authority, (), now):
        authority.issue(found.client_certificate, found.client_key, _client(), now)
    return found


@dataclass(frozen=True, slots=True)
class _Request:
    subject: x509.Name
    usage: x509.ObjectIdentifier
    names: tuple[x509.GeneralName, ...] = ()


def _server(names: Iterable[str]) -> _Request:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fullrank")])
    return _Request(subject, ExtendedKeyUsageOID.SERVER_AUTH, tuple(_general_name(name) for name in names))


def _client() -> _Request:
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, GROUP),
        x509.NameAttribute(NameOID.COMMON_NAME, USER),
    ]
    return _Request(x509.Name(subject), ExtendedKeyUsageOID.CLIENT_AUTH)


@dataclass(frozen=True, slots=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def kept(cls, folder: Path, now: datetime) -> "_Authority":
        certificate, key = folder / "ca.crt", folder / "ca.key"
        found, secret = _certificate(certificate), _key(key)
        if found is not None and secret is not None and _lasts(found, now):
            return cls(found, secret)
        fresh = cls._made(now)
        _write(key, _private(fresh.key))
        _write(certificate, fresh.certificate.public_bytes(Encoding.PEM))
        return fresh

    @classmethod
    def _made(cls, now: datetime) -> "_Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fullrank-ca")])
        certificate = (
            _builder(subject, subject, key, now)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate, key)

    def issue(self, certificate: Path, key: Path, request: _Request, now: datetime) -> None:
        secret = ec.generate_private_key(ec.SECP256R1())
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        builder = (
            _builder(request.subject, self.certificate.subject, secret, now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([request.usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
            )
        )
        if request.names:
            builder = builder.add_extension(x509.SubjectAlternativeName(request.names), critical=False)
        signed = builder.sign(self.key, hashes.SHA256())
        _write(key, _private(secret))
        _write(certificate, signed.public_bytes(Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _serves(certificate: Path, key: Path, authority: _Authority, names: Iterable[str], now: datetime) -> bool:
    found = _certificate(certificate)
    if found is None or _key(key) is None or not _lasts(found, now):
        return False
    try:
        found.verify_directly_issued_by(authority.certificate)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return {_general_name(name) for name in names} <= _names_in(found)


def _names_in(certificate: x509.Certificate) -> set[x509.GeneralName]:
    try:
        return set(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return set()


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _lasts(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - RENEW_BEFORE


def _certificate(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


def _key(path: Path) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        token = ""
    if not token:
        token = secrets.token_urlsafe(32)
        _write(path, f"{token}\n".encode("ascii"))
    return token


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all, and never readable by others, not even for a moment."""
    draft = path.with_name(f".{path.name}.new")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    draft.replace(path)

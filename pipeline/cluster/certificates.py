"""Certificates for one Dask cluster: an authority of its own and one certificate each for scheduler, workers, clients.

Dask lets in whatever the authority signed, checks no host name and hardly tells roles apart. So the authority signs
these three, and its key is forgotten: it is never written, nobody can add a fourth. New ones replace all of them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from gramline.pipeline.errors import InputError

DAYS = 30
MOST_DAYS = 397  # what browsers grant at most; a cluster that lives longer should still change its keys
BACKDATED = timedelta(minutes=5)  # clocks of a cluster are not all the same
CALLS = ExtendedKeyUsageOID.CLIENT_AUTH
ANSWERS = ExtendedKeyUsageOID.SERVER_AUTH
# Scheduler and workers call each other; a client only calls, and its certificate cannot pose as a scheduler.
ROLES = {"scheduler": (ANSWERS, CALLS), "worker": (ANSWERS, CALLS), "client": (CALLS,)}


@dataclass(frozen=True)
class Certificates:
    """A folder of certificates; all end at the same moment."""

    folder: Path
    ends: datetime

    @property
    def files(self) -> tuple[Path, ...]:
        names = ("ca.pem", *(f"{role}.{kind}" for role in ROLES for kind in ("pem", "key")))
        return tuple(self.folder / name for name in names)


def make_certificates(folder: Path, *, days: int = DAYS, now: datetime | None = None) -> Certificates:
    """Write ca.pem and {scheduler,worker,client}.{pem,key} into a new folder that only its owner can enter.

    The folder appears whole or not at all; one with something in it is never touched.
    """
    if not 1 <= days <= MOST_DAYS:
        raise InputError(
            f"certificates live between 1 and {MOST_DAYS} days, got {days}", advice="short lives are safer"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            f"{folder} exists already", advice="choose a new folder, or move the old certificates away first"
        )
    begins = (now or datetime.now(UTC)) - BACKDATED
    made = Certificates(folder, begins + BACKDATED + timedelta(days=days))
    folder.parent.mkdir(parents=True, exist_ok=True)
    staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))  # mode 0700
    try:
        _write_all(staged, begins, made.ends)
        staged.rename(folder)
    except BaseException as error:
        shutil.rmtree(staged, ignore_errors=True)
        if isinstance(error, OSError) and folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder} exists already", advice="somebody else wrote there just now") from None
        raise
    return made


def days_left(certificate: Path) -> float:
    """Days until the certificate in a PEM file ends; negative when it has."""
    try:
        loaded = x509.load_pem_x509_certificate(certificate.read_bytes())
    except ValueError:
        raise InputError(
            f"{certificate} holds no certificate in PEM form", advice="check which file is meant"
        ) from None
    return (loaded.not_valid_after_utc - datetime.now(UTC)) / timedelta(days=1)


def _write_all(folder: Path, begins: datetime, ends: datetime) -> None:
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("gramline cluster authority")
    authority = (
        _begun(authority_name, authority_key, begins, ends)
        .issuer_name(authority_name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    _write(folder / "ca.pem", authority.public_bytes(Encoding.PEM), 0o644)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    for role, purposes in ROLES.items():
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _begun(_name(f"gramline {role}"), key, begins, ends)
            .issuer_name(authority_name)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(f"{role}.gramline.invalid")]), critical=False)
            .add_extension(issuer, critical=False)
            .sign(authority_key, hashes.SHA256())
        )
        _write(folder / f"{role}.pem", certificate.public_bytes(Encoding.PEM), 0o644)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        _write(folder / f"{role}.key", secret, 0o600)


def _begun(
    name: x509.Name, key: ec.EllipticCurvePrivateKey, begins: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    """What the key may do: sign certificates (the authority), or sign a handshake (everybody else)."""
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    """A new file that never was readable by others, whatever the umask says."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)

"""Certificates: what is in them, who may read them, and that nothing is overwritten."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from gramline.pipeline.cli.main import run
from gramline.pipeline.cluster.certificates import ROLES, days_left, make_certificates
from gramline.pipeline.errors import InputError

FILES = {"ca.pem", *(f"{role}.{kind}" for role in ("scheduler", "worker", "client") for kind in ("pem", "key"))}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def loaded(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_gets_in(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        made = make_certificates(tmp_path / "certs")
    finally:
        os.umask(before)
    assert {path.name for path in made.folder.iterdir()} == FILES == {path.name for path in made.files}
    assert mode(made.folder) == 0o700
    assert {mode(made.folder / f"{role}.key") for role in ROLES} == {0o600}
    assert [path.name for path in tmp_path.iterdir()] == ["certs"]


def test_every_certificate_is_signed_by_the_authority_and_fits_its_key(tmp_path: Path) -> None:
    folder = make_certificates(tmp_path / "certs").folder
    authority = loaded(folder / "ca.pem")
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    for role in ROLES:
        certificate = loaded(folder / f"{role}.pem")
        certificate.verify_directly_issued_by(authority)
        assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        key = load_pem_private_key((folder / f"{role}.key").read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert key.public_key() == certificate.public_key()


def test_a_client_cannot_pose_as_a_scheduler(tmp_path: Path) -> None:
    folder = make_certificates(tmp_path / "certs").folder
    usages = {
        role: set(loaded(folder / f"{role}.pem").extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
        for role in ROLES
    }
    server = x509.ExtendedKeyUsageOID.SERVER_AUTH
    assert {role for role, usage in usages.items() if server in usage} == {"scheduler", "worker"}


@pytest.mark.parametrize("days", [1, 30, 397])
def test_they_live_as_long_as_told(tmp_path: Path, days: int) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    made = make_certificates(tmp_path / "certs", days=days, now=now)
    for path in made.files:
        if path.suffix == ".pem":
            assert loaded(path).not_valid_after_utc == made.ends == now + timedelta(days=days)
            assert loaded(path).not_valid_before_utc <= now


def test_days_left(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certs", days=10)
    assert 9.9 < days_left(made.folder / "client.pem") < 10.1
    old = make_certificates(tmp_path / "old", days=10, now=datetime.now(UTC) - timedelta(days=12))
    assert -2.1 < days_left(old.folder / "client.pem") < -1.9
    with pytest.raises(InputError, match="holds no certificate"):
        days_left(made.folder / "client.key")


@pytest.mark.parametrize("days", [0, -1, 398])
def test_a_life_too_short_or_too_long_is_refused(tmp_path: Path, days: int) -> None:
    with pytest.raises(InputError, match="between 1 and 397 days"):
        make_certificates(tmp_path / "certs", days=days)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "certs")
    (tmp_path / "other").write_text("precious")
    before = {path: path.read_bytes() for path in (*made.files, tmp_path / "other")}
    for name in ("certs", "other"):
        with pytest.raises(InputError, match="exists already"):
            make_certificates(tmp_path / name)
    assert {path: path.read_bytes() for path in before} == before


def test_an_empty_folder_becomes_private(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    folder.mkdir(mode=0o755)
    make_certificates(folder)
    assert mode(folder) == 0o700


def test_two_clusters_do_not_trust_each_other(tmp_path: Path) -> None:
    ours, theirs = (make_certificates(tmp_path / name).folder for name in ("ours", "theirs"))
    with pytest.raises(InvalidSignature):
        loaded(theirs / "client.pem").verify_directly_issued_by(loaded(ours / "ca.pem"))


def test_the_command_says_who_gets_what_and_shows_no_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "certs"
    assert run(["cluster", "certs", str(folder), "--days", "7"]) == 0
    written = capsys.readouterr()
    assert "worker.pem  worker.key" in written.out
    assert "PRIVATE KEY" not in written.out + written.err
    assert 6.9 < days_left(folder / "worker.pem") < 7.1
    assert run(["cluster", "certs", str(folder)]) == 2
    assert "exists already" in capsys.readouterr().err

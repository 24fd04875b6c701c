# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether gpgtar chooses what gpg chooses: the same words and configuration for both, and the packets compared.

usage: gnupg_compare.py PROGRAM FOLDER [ROW…]     compares all rows, or those whose names begin so
GNUPGHOME must be an empty folder with a short name. What gpg makes of a file is read with gpg --list-packets.
Prints one line a row; exit 1 where one differs in a way that the table does not name.
"""
import concurrent.futures
import os
import queue
import re
import shutil
import subprocess
import sys

PROGRAM, FOLDER = sys.argv[1], sys.argv[2]
HOME = os.environ["GNUPGHOME"]
SAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../testdata/samples/keys")
WORKERS = 4
PW = ["--pinentry-mode", "loopback", "--passphrase-file", FOLDER + "/pw"]

# ---- keys ----

# name: (primary algorithm, its parameter, subkey algorithm, its parameter, preferences or None for gpg's own)
KEYS = {
    "plain": ("EDDSA", "ed25519", "ECDH", "cv25519", None),
    "second": ("EDDSA", "ed25519", "ECDH", "cv25519", None),
    "rsa": ("RSA", 2048, "RSA", 2048, None),
    "dsaelg": ("DSA", 1024, "ELG-E", 1024, None),
    "nist256": ("ECDSA", "nistp256", "ECDH", "nistp256", None),
    "nist384": ("ECDSA", "nistp384", "ECDH", "nistp384", None),
    "nist521": ("ECDSA", "nistp521", "ECDH", "nistp521", None),
    "brain384": ("ECDSA", "brainpoolP384r1", "ECDH", "brainpoolP384r1", None),
    "aes192": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES192 AES256 SHA384 SHA256 ZIP"),
    "aes128": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES SHA512 SHA256 ZLIB"),
    "noz": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES256 SHA256 Uncompressed"),
    "zipless": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES256 SHA256"),
    "storefirst": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES256 SHA256 Uncompressed ZIP"),
    "sha512": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES256 SHA512 SHA384 SHA256 ZLIB"),
    "sha224": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES256 SHA224 SHA512 ZLIB"),
    "tdes": ("EDDSA", "ed25519", "ECDH", "cv25519", "3DES SHA256 ZIP"),
    "twofish": ("EDDSA", "ed25519", "ECDH", "cv25519", "TWOFISH AES256 SHA256 BZIP2 ZLIB"),
    "camellia": ("EDDSA", "ed25519", "ECDH", "cv25519", "CAMELLIA256 CAMELLIA128 SHA256 ZIP"),
    "cast5": ("EDDSA", "ed25519", "ECDH", "cv25519", "CAST5 AES SHA256 ZIP"),
    "oldonly": ("EDDSA", "ed25519", "ECDH", "cv25519", "CAST5 3DES SHA1 ZIP"),
    "empty": ("EDDSA", "ed25519", "ECDH", "cv25519", "none"),
    "bzip": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES256 SHA256 BZIP2 ZLIB ZIP"),
    "nomdc": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES256 SHA512 ZLIB no-mdc"),
    "multi": ("EDDSA", "ed25519", "ECDH", "cv25519", None),
    "signsubs": ("EDDSA", "ed25519", "ECDH", "cv25519", None),
    "subgone": ("EDDSA", "ed25519", "ECDH", "cv25519", None),
    "twouids": ("EDDSA", "ed25519", "ECDH", "cv25519", "AES192 SHA384 ZIP"),
    "signonly": ("EDDSA", "ed25519", None, None, None),
}
ALGOS = {1: "RSA", 16: "ELG", 17: "DSA", 18: "ECDH", 19: "ECDSA", 22: "EdDSA"}


def run(*words, check=True, text=None, home=None):
    env = dict(os.environ, GNUPGHOME=home) if home else None
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
                          stdin=subprocess.DEVNULL if text is None else None, input=text)
    if check and done.returncode:
        sys.exit("%s: exit %d\n%s" % (" ".join(words), done.returncode, done.stderr.decode(errors="replace")))
    return done


def gpg(*words, **more):
    return run("gpg", "--batch", "--quiet", "--no-tty", "--yes", "--pinentry-mode", "loopback", "--passphrase", "",
               *words, **more)


def parameters():
    text = "%no-protection\n"
    for name, (primary, how, sub, sub_how, preferences) in KEYS.items():
        kind = "Curve" if isinstance(how, str) else "Length"
        text += "Key-Type: %s\nKey-%s: %s\nKey-Usage: sign\n" % (primary, kind, how)
        if sub:
            text += "Subkey-Type: %s\nSubkey-%s: %s\nSubkey-Usage: encrypt\n" % (
                sub, "Curve" if isinstance(sub_how, str) else "Length", sub_how)
        text += "Name-Real: %s\nName-Email: %s@example.org\nCreation-Date: 20200101T000000\n" % (name, name)
        if preferences:
            text += "Preferences: %s\n" % preferences
        text += "%commit\n"
    return text


def listing(pattern):
    """(primary fingerprint, [(key id, creation)] of primary and subkeys) of the one certificate that matches."""
    lines = gpg("--with-colons", "--fixed-list-mode", "--list-keys", pattern).stdout.decode().splitlines()
    keys = [line.split(":") for line in lines if line.startswith(("pub:", "sub:"))]
    fpr = next(line.split(":")[9] for line in lines if line.startswith("fpr:"))
    return fpr, [key[4] for key in keys]


def make_keys():
    with open(FOLDER + "/pw", "w") as file:
        file.write("a passphrase\n")
    with open(FOLDER + "/plain", "w") as file:
        file.writelines("line %d\n" % i for i in range(3000))
    gpg("--gen-key", text=parameters().encode())
    fpr = {name: listing("=%s <%s@example.org>" % (name, name))[0] for name in KEYS}
    # Several encryption subkeys: the third is the newest that stands, the second has expired, the fourth is revoked.
    for when, expires in (("20210101T000000", "never"), ("20230101T000000", "20230601T000000"),
                          ("20220101T000000", "never"), ("20240101T000000", "never")):
        gpg("--faked-system-time", when, "--quick-add-key", fpr["multi"], "cv25519", "encr", expires)
    edit(fpr["multi"], "key 5", "revkey", "y", "0", "", "y", "save")
    for when, expires in (("20210101T000000", "never"), ("20220101T000000", "never"),
                          ("20230101T000000", "20230601T000000")):
        gpg("--faked-system-time", when, "--quick-add-key", fpr["signsubs"], "ed25519", "sign", expires)
    gpg("--faked-system-time", "20210101T000000", "--quick-add-key", fpr["subgone"], "ed25519", "sign", "never")
    gpg("--faked-system-time", "20220101T000000", "--quick-add-key", fpr["subgone"], "ed25519", "sign", "never")
    # The secret of its newest signing subkey is on another machine.
    lines = gpg("--with-colons", "--with-keygrip", "--list-secret-keys", fpr["subgone"]).stdout.decode().splitlines()
    grips = [line.split(":")[9] for line in lines if line.startswith("grp:")]
    os.remove("%s/private-keys-v1.d/%s.key" % (HOME, grips[-1]))
    gpg("--default-preference-list", "TWOFISH AES256 SHA512 BZIP2", "--quick-add-uid", fpr["twouids"],
        "other <other@example.org>")
    gpg("--quick-set-primary-uid", fpr["twouids"], "twouids <twouids@example.org>")
    for name in ("ed25519n", "expired"):
        gpg("--import", "%s/%s.sec.asc" % (SAMPLES, name))
    fpr["ocb"] = listing("C0FCC0BD16ADE0CCA4A0010D2F403C090EB53116")[0]
    gpg("--import-ownertrust", text="".join("%s:6:\n" % f for f in fpr.values()).encode())
    gpg("--check-trustdb")
    return fpr


def edit(fpr, *answers):
    run("gpg", "--no-tty", "--quiet", "--yes", "--command-fd", "0", "--status-fd", "2", "--expert", "--edit-key", fpr,
        text=("\n".join(answers) + "\n").encode())


# ---- what a file holds ----

def facts(path, home):
    """What was chosen, in words, by kind."""
    done = run("gpg", "--batch", "--no-tty", "-v", "--list-packets", *PW, path, check=False, home=home)
    out = done.stdout.decode(errors="replace")
    err = done.stderr.decode(errors="replace")
    found = {}

    def add(kind, value):
        found.setdefault(kind, []).append(value)

    for match in re.finditer(r":(pubkey enc|symkey enc|encrypted data|aead encrypted|compressed|onepass_sig|signature|"
                             r"literal data) packet:(.*)\n((?:\t.*\n)*)", out):
        kind, head, body = match.groups()
        if kind == "pubkey enc":
            words = re.search(r"algo (\d+), keyid ([0-9A-F]+)", head)
            add("to", "%s %s" % (ALGOS.get(int(words[1]), words[1]), words[2]))
            add("order", "key")
        elif kind == "symkey enc":
            words = re.search(r"version (\d+), cipher (\d+), aead (\d+), *s2k (\d+), hash (\d+)(, seskey)?", head)
            count = re.search(r"count (\d+)", body)
            add("skesk", "v%s cipher %s%s" % (words[1], words[2], words[6] or ""))
            add("s2k", "mode %s count %s" % (words[4], count[1] if count else "-"))
            add("s2k-digest", words[5])
            add("order", "passphrase")
        elif kind == "encrypted data":
            add("packet", "18" if "mdc_method: 2" in body else "9")
        elif kind == "aead encrypted":
            add("packet", "20 " + re.sub(r" cb=\d+", "", head.strip()))
        elif kind == "compressed":
            add("compress", re.search(r"algo=(\d+)", head)[1])
        elif kind == "onepass_sig":
            add("signer", re.search(r"keyid ([0-9A-F]+)", head)[1])
        elif kind == "signature":
            add("digest", re.search(r"digest algo (\d+)", body)[1])
            add("signed", re.search(r"keyid ([0-9A-F]+)", head)[1])
    for match in re.finditer(r"^gpg: (\S+) encrypted data", err, re.M):
        add("cipher", match[1].split(".")[0])
    if done.returncode and "literal data packet" not in out:
        add("unreadable", err)
    if "compress" not in found and "literal data packet" in out:
        found["compress"] = ["0"]
    return found


# ---- the table ----
# (row, words for both, gpg.conf, what differs on purpose: {kind: (gpg's, ours)}, None: anything)
ANY_ORDER = "any order"
T = "--always-trust"
# gpg would find out how many bytes take 100 ms, which is long in a table of this length.
SYM = " ".join(PW) + " --s2k-count 65536"
# Where nothing decides, gpg takes its built-in digest, and we what is fastest on this machine.
FREE = {"digest": None}
# gpg hashes passphrases with SHA-1; we with SHA-256.
S2K = {"s2k-digest": (["2"], ["8"])}
# SHA-512 before SHA-256 as in the list of every new key is no one's wish: SHA-256 where it is faster. A list that
# somebody made counts.
STOCK = {"digest": (["10"], None)}
# Ed25519 takes digests of 256 bits and more (RFC 9580 5.2.3).
SHORT = {"digest": (["11"], None)}
# gpg 2.2 reads OCB, but does not write it; gpg 2.3 and later do.
OCB = {"packet": (["18"], ["20 cipher=9 aead=2"])}
# The session key for a passphrase is encrypted with the cipher of the message; gpg's S2K cipher, mostly AES-256.
WRAP = dict(S2K, skesk=None)
# gpg turns the members of a group round.
GROUP = {"to": ANY_ORDER}
# gpg hashes with SHA-1 where a recipient knows nothing better, or for DSA keys of 1024 bits; we never do.
NO_SHA1 = {"digest": (["2"], None)}


def user(name):
    return "-r %s@example.org" % name


def rows(fpr):
    """All rows; FPR has the keys' fingerprints by name."""
    key = dict(fpr)
    _, key["multi ids"] = listing(fpr["multi"])
    _, key["signsubs ids"] = listing(fpr["signsubs"])
    _, key["subgone ids"] = listing(fpr["subgone"])
    return (recipient_rows(key) + selection_rows(key) + hidden_rows(key) + cipher_rows(key) + compress_rows(key) +
            digest_rows(key) + signer_rows(key) + passphrase_rows(key) + profile_rows(key) + default_rows(key))


def recipient_rows(key):
    table = []
    for name in KEYS:
        if name == "signonly":
            continue
        # Blocks of 64 bits are never taken by default: AES-128, which every program reads.
        old = {"tdes": ("3DES", "AES"), "oldonly": ("CAST5", "AES"), "empty": ("3DES", "AES"),
               "cast5": ("CAST5", "AES")}.get(name)
        table.append(("to " + name, "-e %s %s" % (T, user(name)), "",
                      {"cipher": ([old[0]], [old[1]])} if old else {}))
    pairs = ["plain aes192", "aes192 plain", "twofish plain", "plain twofish", "twofish aes192",
             "noz plain", "storefirst zipless", "zipless storefirst", "noz zipless", "bzip twofish", "bzip plain",
             "sha224 sha512", "ocb plain", "plain ocb", "rsa dsaelg nist256", "plain plain", "plain second plain",
             "bzip noz zipless"]
    for pair in pairs:
        words = " ".join("-r " + key["ocb"] if name == "ocb" else user(name) for name in pair.split())
        table.append(("to " + pair, "-e %s %s" % (T, words), "", {}))
    table.append(("to ocb", "-e %s -r %s" % (T, key["ocb"]), "", OCB))
    table.append(("signed to ocb", "-es %s -u nist384 -r %s" % (T, key["ocb"]), "", OCB))
    table.append(("to ocb, another cipher", "-e %s --cipher-algo AES192 -r %s" % (T, key["ocb"]), "",
                  {"packet": (["18"], ["20 cipher=8 aead=2"])}))
    table.append(("to ocb, 3DES", "-e %s --cipher-algo 3DES -r %s" % (T, key["ocb"]), "", {}))
    for pair in ("twofish camellia", "tdes plain", "aes128 aes192", "camellia camellia aes128"):
        table.append(("to " + pair, "-e %s %s" % (T, " ".join(user(name) for name in pair.split())), "",
                      {"cipher": (["3DES"], ["AES"])}))
    return table


def selection_rows(key):
    ids = key["multi ids"]
    return [
        ("by fingerprint", "-e %s -r %s" % (T, key["rsa"]), "", {}),
        ("by key id", "-e %s -r 0x%s" % (T, key["rsa"][-16:]), "", {}),
        ("by part of a name", "-e %s -r aes19" % T, "", {}),
        ("by exact user id", "-e %s -r '=rsa <rsa@example.org>'" % T, "", {}),
        ("by address in brackets", "-e %s -r '<rsa@example.org>'" % T, "", {}),
        ("the newest subkey that stands", "-e %s -r multi@example.org" % T, "", {}),
        ("by an older subkey", "-e %s -r %s" % (T, ids[1]), "", {}),
        ("an older subkey with !", "-e %s -r %s!" % (T, ids[1]), "", {}),
        ("the second subkey with !", "-e %s -r %s!" % (T, ids[2]), "", {}),
        ("the first and the newest", "-e %s -r %s! -r multi@example.org" % (T, ids[1]), "", {}),
        ("by the second user id", "-e %s -r other@example.org" % T, "", {}),
        ("by the first user id", "-e %s -r twouids@example.org" % T, "", {}),
        ("two user ids, by fingerprint", "-e %s -r %s" % (T, key["twouids"]), "", {}),
        ("signed to the second user id", "-es %s -u plain -r other@example.org" % T, "", {}),
        ("from a file", "-e -f %s/rsa.pub" % FOLDER, "", {}),
        ("from a file, with another", "-e %s -f %s/aes192.pub -r rsa@example.org" % (T, FOLDER), "", {}),
        ("hidden, from a file", "-e -F %s/rsa.pub" % FOLDER, "", {}),
    ]


def hidden_rows(key):
    return [
        ("hidden", "-e %s -R rsa@example.org" % T, "", {}),
        ("hidden among others", "-e %s -R rsa@example.org -r plain@example.org" % T, "", {}),
        ("hidden twice", "-e %s -R rsa@example.org -r rsa@example.org" % T, "", {}),
        ("named, then hidden", "-e %s -r rsa@example.org -R rsa@example.org" % T, "", {}),
        ("throw-keyids", "-e %s --throw-keyids -r rsa@example.org -r plain@example.org" % T, "", {}),
        ("throw-keyids in gpg.conf", "-e %s -r rsa@example.org -r plain@example.org" % T, "throw-keyids\n", {}),
        ("no-throw-keyids", "-e %s --no-throw-keyids -r rsa@example.org" % T, "throw-keyids\n", {}),
    ]


def cipher_rows(key):
    personal = "personal-cipher-preferences %s\n"
    table = []
    for name, to, differ in (
            ("AES", "plain", {}), ("AES192 AES256", "plain", {}), ("TWOFISH AES", "plain", {}),
            ("TWOFISH AES", "twofish", {}), ("AES", "aes192", {}), ("CAMELLIA128", "camellia", {}),
            ("3DES AES", "plain", {"cipher": (["3DES"], ["AES"])}), ("S9 S8", "plain", {}), ("S7", "plain", {})):
        table.append(("personal %s to %s" % (name, to), "-e %s %s" % (T, user(to)), personal % name, differ))
    for name in "AES AES192 AES256 TWOFISH CAMELLIA128 CAMELLIA192 CAMELLIA256 BLOWFISH CAST5 3DES S9 S3".split():
        table.append(("cipher-algo " + name, "-e %s --cipher-algo %s %s" % (T, name, user("plain")), "", {}))
    return table + [
        ("cipher-algo in gpg.conf", "-e %s %s" % (T, user("plain")), "cipher-algo AES192\n", {}),
        ("cipher-algo before personal", "-e %s --cipher-algo TWOFISH %s" % (T, user("plain")), personal % "AES", {}),
    ]


def compress_rows(key):
    personal = "personal-compress-preferences %s\n"
    table = []
    for name, to in (("ZIP", "plain"), ("BZIP2 ZLIB", "plain"), ("BZIP2", "noz"), ("Uncompressed", "plain"),
                     ("none", "plain"), ("Z2", "plain"), ("BZIP2 ZIP", "zipless"), ("ZLIB", "zipless")):
        table.append(("personal %s to %s" % (name, to), "-e %s %s" % (T, user(to)), personal % name, {}))
    for name in "none Uncompressed ZIP ZLIB BZIP2 Z0 Z1 Z2 Z3 0 1 2".split():
        table.append(("compress-algo " + name, "-e %s --compress-algo %s %s" % (T, name, user("plain")), "", {}))
    return table + [
        ("-z 0", "-e %s -z 0 %s" % (T, user("plain")), "", {}),
        ("-z 6", "-e %s -z 6 %s" % (T, user("plain")), "", {}),
        ("-z 9 bzip2", "-e %s -z 9 %s" % (T, user("bzip")), "", {}),
        ("-z 0 with an algorithm", "-e %s -z 0 --compress-algo ZIP %s" % (T, user("plain")), "", {}),
        ("compress-level 0 in gpg.conf", "-e %s %s" % (T, user("plain")), "compress-level 0\n", {}),
        ("compress-algo in gpg.conf", "-e %s %s" % (T, user("plain")), "compress-algo BZIP2\n", {}),
        ("bzip2-compress-level", "-e %s --bzip2-compress-level 1 %s" % (T, user("bzip")), "", {}),
        ("signed only", "-s -u rsa", "", FREE),
        ("signed only, personal", "-s -u rsa", personal % "BZIP2 ZIP", FREE),
        ("signed only, compress-algo", "-s -u rsa --compress-algo ZLIB", "", FREE),
        ("signed only, -z 0", "-s -u rsa -z 0", "", FREE),
    ]


def digest_rows(key):
    personal = "personal-digest-preferences %s\n"
    table = []
    for name in ("plain", "rsa", "dsaelg", "nist256", "nist384", "nist521", "brain384"):
        differ = {"plain": FREE, "rsa": FREE, "dsaelg": NO_SHA1}.get(name, {})
        table.append(("signed by " + name, "-s -u %s@example.org" % name, "", differ))
        for to in ("plain", "sha512", "sha224", "aes192", "noz", "empty"):
            differ = {}
            if to == "plain" and name in ("plain", "rsa"):
                differ = STOCK
            elif to == "sha224" and name == "plain":
                differ = SHORT
            if to == "empty":
                differ = {"cipher": (["3DES"], ["AES"])}
                differ.update(NO_SHA1 if name in ("plain", "rsa", "dsaelg") else {})
            elif name == "dsaelg" and to == "plain":
                differ = NO_SHA1
            elif name == "dsaelg":
                differ = NO_SHA1
            table.append(("signed by %s to %s" % (name, to),
                          "-es %s -u %s@example.org %s" % (T, name, user(to)), "", differ))
        for wish in ("SHA512", "SHA384 SHA256", "SHA224", "SHA256 SHA512"):
            table.append(("personal %s, signed by %s" % (wish, name), "-s -u %s@example.org" % name, personal % wish,
                          NO_SHA1 if name == "dsaelg" else SHORT if name + wish == "plainSHA224" else {}))
    for name in ("SHA512", "SHA384", "SHA256", "SHA224", "H10"):
        table.append(("digest-algo " + name, "-s -u rsa@example.org --digest-algo " + name, "", {}))
        table.append(("digest-algo %s to noz" % name,
                      "-es %s -u rsa@example.org --digest-algo %s %s" % (T, name, user("noz")), "", {}))
    return table + [
        ("digest-algo in gpg.conf", "-s -u rsa@example.org", "digest-algo SHA384\n", {}),
        ("personal digest to two", "-es %s -u rsa@example.org %s %s" % (T, user("sha512"), user("plain")),
         personal % "SHA384", {}),
        ("personal digest that none has", "-es %s -u rsa@example.org %s" % (T, user("noz")), personal % "SHA512", {}),
    ]


def signer_rows(key):
    ids, gone = key["signsubs ids"], key["subgone ids"]
    return [
        ("two signers", "-s -u rsa@example.org -u plain@example.org --digest-algo SHA256", "", {}),
        ("three signers", "-s -u nist256@example.org -u rsa@example.org -u second@example.org --digest-algo SHA256",
         "", {}),
        ("a signer twice", "-s -u rsa@example.org -u rsa@example.org --digest-algo SHA256", "", {}),
        ("signers that need different digests", "-es %s -u nist256 -u nist384 %s" % (T, user("sha512")), "", {}),
        ("the larger signer first", "-es %s -u nist384 -u nist256 %s" % (T, user("sha512")), "", {}),
        ("ECDSA and RSA", "-es %s -u nist384@example.org -u rsa@example.org %s" % (T, user("sha512")), "", {}),
        ("two signers of curves", "-s -u nist256@example.org -u nist521@example.org", "", {}),
        ("the newest signing subkey", "-s -u signsubs@example.org --digest-algo SHA256", "", {}),
        ("a signing subkey with !", "-s -u %s! --digest-algo SHA256" % ids[2], "", {}),
        ("the primary with !", "-s -u %s! --digest-algo SHA256" % ids[0], "", {}),
        ("a subkey's id without !", "-s -u %s --digest-algo SHA256" % ids[2], "", {}),
        ("a signing subkey whose secret is elsewhere", "-s -u subgone@example.org --digest-algo SHA256", "", {}),
        ("it, by the id of the other", "-s -u %s --digest-algo SHA256" % gone[2], "", {}),
        ("default-key", "-s --default-key second@example.org --digest-algo SHA256", "", {}),
        ("default-key in gpg.conf", "-s --digest-algo SHA256", "default-key second@example.org\n", {}),
        ("several default keys", "-s --digest-algo SHA256",
         "default-key second@example.org\ndefault-key rsa@example.org\n", {}),
        ("default keys, the last unknown", "-s --digest-algo SHA256",
         "default-key second@example.org\ndefault-key nobody@example.org\n", {}),
        ("default key and -u", "-s -u rsa@example.org --digest-algo SHA256", "default-key second@example.org\n", {}),
        ("no default key", "-s --digest-algo SHA256", "", {}),
        ("signed by all to all", "-es %s -u rsa@example.org -u plain@example.org %s %s --digest-algo SHA256" % (
            T, user("rsa"), user("aes192")), "", {}),
    ]


def passphrase_rows(key):
    table = []
    for name in "AES AES192 TWOFISH CAMELLIA256 3DES".split():
        table.append(("-c --cipher-algo " + name, "-c %s --cipher-algo %s" % (SYM, name), "", S2K))
        table.append(("-c --s2k-cipher-algo " + name, "-c %s --s2k-cipher-algo %s" % (SYM, name), "", S2K))
        table.append(("-c, personal " + name, "-c " + SYM, "personal-cipher-preferences %s\n" % name,
                      dict(S2K, cipher=(["3DES"], ["AES256"]), skesk=(["v4 cipher 2"], ["v4 cipher 9"]))
                      if name == "3DES" else S2K))
    plain = " ".join(PW)
    return table + [
        ("-c", "-c " + SYM, "", S2K),
        # The count is what takes 100 ms on this machine in gpg, and the largest there is in ours.
        ("-c, nothing else", "-c " + plain, "", dict(S2K, s2k=None)),
        ("-c --s2k-count between", "-c %s --s2k-count 70000" % SYM, "", S2K),
        ("-c --s2k-digest-algo", "-c %s --s2k-digest-algo SHA512" % SYM, "", {}),
        ("-c, S2K options in gpg.conf", "-c " + plain,
         "s2k-digest-algo SHA1\ns2k-count 65536\ns2k-cipher-algo AES192\ns2k-mode 3\n", {}),
        ("-c --s2k-mode 1", "-c %s --s2k-mode 1 --s2k-digest-algo SHA256" % SYM, "", {}),
        ("-c --s2k-mode 0", "-c %s --s2k-mode 0 --s2k-digest-algo SHA256" % SYM, "", {}),
        ("-c --compress-algo", "-c %s --compress-algo BZIP2" % SYM, "", S2K),
        ("-c, personal compression", "-c " + SYM, "personal-compress-preferences BZIP2\n", S2K),
        ("-c, personal digest", "-c " + SYM, "personal-digest-preferences SHA512\n", S2K),
        ("-c and -e", "-c -e %s %s %s" % (T, SYM, user("plain")), "", S2K),
        ("-c and -e to aes192", "-c -e %s %s %s" % (T, SYM, user("aes192")), "", WRAP),
        ("-c and -e, s2k-cipher-algo", "-c -e %s %s --s2k-cipher-algo AES192 %s" % (T, SYM, user("plain")), "", WRAP),
        ("-c and -e, personal cipher", "-c -e %s %s %s" % (T, SYM, user("plain")),
         "personal-cipher-preferences TWOFISH AES192\n", WRAP),
        ("-c and -e, cipher-algo", "-c -e %s %s --cipher-algo TWOFISH %s" % (T, SYM, user("plain")), "", WRAP),
        ("-c and -e to two", "-c -e %s %s %s %s" % (T, SYM, user("plain"), user("aes128")), "", WRAP),
        ("-c and -s", "-c -s -u rsa %s --digest-algo SHA256" % SYM, "", S2K),
        ("-c, -e and -s", "-c -e -s -u rsa %s %s %s --digest-algo SHA256" % (T, SYM, user("plain")), "", S2K),
        ("-c and encrypt-to", "-c " + SYM, "encrypt-to plain@example.org\n", S2K),
    ]


def profile_rows(key):
    return [
        ("--rfc4880", "-e %s --rfc4880 %s" % (T, user("plain")), "", {}),
        ("--rfc4880 to ocb", "-e %s --rfc4880 -r %s" % (T, key["ocb"]), "", {}),
        ("--rfc4880 signed", "-s -u rsa@example.org --rfc4880", "", FREE),
        ("--rfc4880 -c", "-c %s --rfc4880" % SYM, "", dict(S2K, cipher=(["3DES"], ["AES256"]), skesk=None)),
        ("--gnupg", "-e %s --gnupg %s" % (T, user("plain")), "", {}),
        ("--gnupg after --rfc4880", "-es %s --rfc4880 --gnupg -u rsa %s" % (T, user("sha512")), "", {}),
        ("--gnupg -c", "-c %s --gnupg" % SYM, "", S2K),
        ("rfc4880 in gpg.conf", "-e %s %s" % (T, user("aes192")), "rfc4880\n", {}),
    ]


def default_rows(key):
    to = "encrypt-to second@example.org\n"
    return [
        ("encrypt-to", "-e %s %s" % (T, user("plain")), to, {}),
        ("encrypt-to on the command line", "-e %s --encrypt-to rsa@example.org %s" % (T, user("plain")), to, {}),
        ("two encrypt-to", "-e %s %s %s" % (T, user("plain"), user("rsa")), to + "encrypt-to aes192@example.org\n", {}),
        ("encrypt-to a recipient", "-e %s %s" % (T, user("second")), to, {}),
        ("encrypt-to with other preferences", "-e %s %s" % (T, user("plain")), "encrypt-to aes192@example.org\n", {}),
        ("no-encrypt-to", "-e %s --no-encrypt-to %s" % (T, user("plain")), to, {}),
        ("hidden-encrypt-to", "-e %s %s" % (T, user("plain")), "hidden-" + to, {}),
        ("hidden-encrypt-to a recipient", "-e %s %s" % (T, user("second")), "hidden-" + to, {}),
        ("hidden-encrypt-to, no-encrypt-to", "-e %s --no-encrypt-to %s" % (T, user("plain")), "hidden-" + to, {}),
        ("default-recipient", "-e " + T, "default-recipient rsa@example.org\n", {}),
        ("default-recipient and -r", "-e %s %s" % (T, user("plain")), "default-recipient rsa@example.org\n", {}),
        ("default-recipient and encrypt-to", "-e " + T, "default-recipient rsa@example.org\n" + to, {}),
        ("default-recipient-self", "-e " + T, "default-recipient-self\n", {}),
        ("default-recipient-self with default-key", "-e " + T,
         "default-recipient-self\ndefault-key rsa@example.org\n", {}),
        ("default-recipient-self and -r", "-e %s %s" % (T, user("plain")), "default-recipient-self\n", {}),
        ("group", "-e %s -r us" % T, "group us=plain@example.org rsa@example.org\n", GROUP),
        ("group and a recipient", "-e %s -r us %s" % (T, user("second")),
         "group us = plain@example.org rsa@example.org\n", GROUP),
        ("a group in two lines", "-e %s -r us" % T, "group us=plain@example.org\ngroup us=rsa@example.org\n", GROUP),
        ("a group of a group", "-e %s -r all" % T,
         "group us=plain@example.org\ngroup all=us rsa@example.org\n", "refused"),
        ("a hidden group", "-e %s -R us" % T, "group us=plain@example.org rsa@example.org\n", GROUP),
        ("a group by any case", "-e %s -r US" % T, "group us=plain@example.org rsa@example.org\n", GROUP),
        ("a group with a member twice", "-e %s -r us %s" % (T, user("rsa")),
         "group us=plain@example.org rsa@example.org\n", GROUP),
        ("no-groups", "-e %s --no-groups -r aes192" % T, "group aes192=plain@example.org\n", {}),
        ("trust-model in gpg.conf", "-e " + user("plain"), "trust-model always\n", {}),
        ("always-trust in gpg.conf", "-e " + user("plain"), "always-trust\n", {}),
    ]


def compare(number, home, words, conf, differ):
    """What is wrong with a row; None: nothing."""
    with open(home + "/gpg.conf", "w") as file:
        file.write(conf)
    ours, theirs = "%s/%d.ours" % (FOLDER, number), "%s/%d.gpg" % (FOLDER, number)
    words = [word.strip("'") for word in re.findall(r"'[^']*'|\S+", words)]
    bystander = run("gpg", "--batch", "--no-tty", "--yes", *words, "-o", theirs, FOLDER + "/plain", check=False,
                    home=home)
    mine = run(PROGRAM, "--batch", "--yes", *words, "-C", FOLDER, "-o", ours, "plain", check=False, home=home)
    os.remove(home + "/gpg.conf")
    if bystander.returncode or mine.returncode:
        if bystander.returncode and mine.returncode and differ == "refused":
            return None
        return "gpg: exit %d, we: exit %d: %s" % (
            bystander.returncode, mine.returncode, (mine.stderr or bystander.stderr).decode(errors="replace"))
    return differences(facts(theirs, home), facts(ours, home), differ)


def differences(theirs, ours, differ):
    wrong = []
    for kind in sorted(set(theirs) | set(ours) | set(differ)):
        want, have = theirs.get(kind), ours.get(kind)
        rule = differ.get(kind)
        if kind in differ and rule is None:
            continue
        if rule == ANY_ORDER:
            want, have = sorted(want), sorted(have)
        elif rule:
            if want != rule[0]:
                wrong.append("gpg's %s is %s, not %s as the table says" % (kind, want, rule[0]))
            # None: anything but what gpg takes.
            want = rule[1] or (have if have != rule[0] else "something else")
        if want != have:
            wrong.append("%s: gpg %s, we %s" % (kind, want, have))
    return "; ".join(wrong) or None


def copy_home(number):
    """The same home once more, with an agent of its own: each worker writes its own gpg.conf."""
    home = "%s/%d" % (FOLDER, number)
    shutil.copytree(HOME, home, ignore=lambda _, names: [name for name in names if name.startswith("S.")])
    return home


def main():
    fpr = make_keys()
    for name in ("rsa", "aes192"):
        gpg("--output", "%s/%s.pub" % (FOLDER, name), "--export", fpr[name])
    table = [row for row in enumerate(rows(fpr), 1)
             if len(sys.argv) < 4 or any(row[1][0].startswith(wanted) for wanted in sys.argv[3:])]
    homes = queue.Queue()
    for number in range(WORKERS):
        homes.put(copy_home(number))

    def one(row):
        home = homes.get()
        try:
            return row[1][0], compare(row[0], home, *row[1][1:])
        finally:
            homes.put(home)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        for name, wrong in pool.map(one, table):
            failed += wrong is not None
            print("%s %s%s" % ("not ok" if wrong else "ok", name, ": " + wrong.strip() if wrong else ""), flush=True)
    while not homes.empty():
        run("gpgconf", "--kill", "all", home=homes.get())
    print("%d rows, %d wrong" % (len(table), failed))
    return 1 if failed else 0


sys.exit(main())

"""Known answers of the cryptography that rounds stand on, as the RFCs print them."""

X25519 = {
    "RFC 7748, section 5.2, first": {
        "scalar": "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "point": "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "result": "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    },
    "RFC 7748, section 5.2, second": {
        "scalar": "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
        "point": "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
        "result": "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
    },
    "RFC 7748, section 6.1, Alice's public key": {
        "scalar": "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
        "point": "0900000000000000000000000000000000000000000000000000000000000000",
        "result": "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
    },
    "RFC 7748, section 6.1, their secret": {
        "scalar": "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        "point": "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
        "result": "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742",
    },
}

HKDF_SHA256 = {
    "RFC 5869, A.1": {
        "secret": "0b" * 22,
        "salt": "000102030405060708090a0b0c",
        "info": "f0f1f2f3f4f5f6f7f8f9",
        "result": "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf",
    },
    "RFC 5869, A.2": {
        "secret": bytes(range(0x50)).hex(),
        "salt": bytes(range(0x60, 0xB0)).hex(),
        "info": bytes(range(0xB0, 0x100)).hex(),
        "result": "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c",
    },
    "RFC 5869, A.3": {
        "secret": "0b" * 22,
        "salt": "",
        "info": "",
        "result": "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d",
    },
}

# Nonce 0 from block 0 on, which is how masks use it.
CHACHA20 = {
    "RFC 8439, A.1, first and second": {
        "key": "00" * 32,
        "stream": "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    },
}

CHACHA20_POLY1305 = {
    "RFC 8439, section 2.8.2": {
        "key": bytes(range(0x80, 0xA0)).hex(),
        "nonce": "070000004041424344454647",
        "plaintext": (
            b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
            b"future, sunscreen would be it."
        ).hex(),
        "associated": "50515253c0c1c2c3c4c5c6c7",
        "result": "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
        "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
        "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
        "3ff4def08e4b7a9de576d26586cec64b61161ae10b594f09e26a7e902ecbd0600691",
    },
}

ED25519 = {
    "RFC 8032, section 7.1, test 1": {
        "private": "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "public": "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "message": "",
        "signature": "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555"
        "fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    },
    "RFC 8032, section 7.1, test 2": {
        "private": "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "public": "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "message": "72",
        "signature": "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da0"
        "85ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    },
    "RFC 8032, section 7.1, test 3": {
        "private": "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "public": "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "message": "af82",
        "signature": "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac1"
        "8ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    },
}

# What confirms a list of survivors is cut to 16 bytes, as the answer of test case 5 is.
HMAC_SHA256 = {
    "RFC 4231, test case 1": {
        "key": "0b" * 20,
        "statement": b"Hi There".hex(),
        "result": "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
    },
    "RFC 4231, test case 2": {
        "key": b"Jefe".hex(),
        "statement": b"what do ya want for nothing?".hex(),
        "result": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    },
    "RFC 4231, test case 5": {
        "key": "0c" * 20,
        "statement": b"Test With Truncation".hex(),
        "result": "a3b6167473100ee06e0c796c2955552b",
    },
}

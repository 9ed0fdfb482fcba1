//! Minisign signatures: the publisher has a key pair and puts a small signature file next to the package. The
//! installing user lists trusted keys, or stays with the key of the first installation. Keys and signatures are
//! compatible with the program `minisign`.

use std::io::Cursor;

use cognitive_contract::text::cut;
use minisign::{KeyPair, PublicKey, PublicKeyBox, SecretKeyBox, SignatureBox};

use crate::PackageError;
use crate::lock::LockedModule;
use crate::module_folder::Overwrite;

/// A key to verify packages with.
#[derive(Debug, Clone)]
pub struct TrustedKey(PublicKey);

/// A new key pair, each key as the text of a file.
#[derive(Debug)]
pub struct NewKeys {
    /// The secret key, encrypted if a password was given.
    pub secret: String,
    /// The public key.
    pub public: String,
}

impl TrustedKey {
    /// Parses a key: its base64 line, or the whole file.
    pub fn parse(text: &str) -> Result<Self, PackageError> {
        let text = text.trim();
        let key = if text.contains('\n') {
            PublicKeyBox::from_string(text).and_then(PublicKeyBox::into_public_key)
        } else {
            PublicKey::from_base64(text)
        };
        key.map(Self).map_err(|_| {
            PackageError::new(format!("not a public key of minisign: `{}`", cut(text, 60)))
                .hint("The key is the line that begins with `RW` in a file such as `minisign.pub`")
        })
    }

    /// The base64 line of the key, for exchange with others.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.to_base64()
    }
}

/// Creates a key pair. Without a password, every reader of the file can use the secret key.
pub fn generate(password: Option<String>) -> Result<NewKeys, PackageError> {
    let failed = |error: minisign::PError| PackageError::new(format!("cannot create keys: {error}"));
    let pair = match password {
        Some(password) => KeyPair::generate_encrypted_keypair(Some(password)),
        None => KeyPair::generate_unencrypted_keypair(),
    }
    .map_err(failed)?;
    let secret = pair.sk.to_box(Some("minisign encrypted secret key")).map_err(failed)?.into_string();
    Ok(NewKeys { secret, public: pair.pk.to_box().map_err(failed)?.into_string() })
}

/// Returns whether the secret key in this file is encrypted.
pub fn needs_password(secret: &str) -> Result<bool, PackageError> {
    let unencrypted = secret_box(secret)?.into_unencrypted_secret_key();
    Ok(unencrypted.is_err())
}

/// Signs an archive. The comment is part of the signature.
pub fn sign(
    secret: &str,
    password: Option<String>,
    archive: &[u8],
    comment: &str,
) -> Result<String, PackageError> {
    let refused = |_| PackageError::new("cannot use the secret key").hint("Check the password");
    let key = match password {
        Some(password) => secret_box(secret)?.into_secret_key(Some(password)).map_err(refused)?,
        None => secret_box(secret)?.into_unencrypted_secret_key().map_err(refused)?,
    };
    let signed = minisign::sign(
        None,
        &key,
        Cursor::new(archive),
        Some(comment),
        Some("signature of a cognitive module"),
    );
    let signed = signed.map_err(|error| PackageError::new(format!("cannot sign the package: {error}")))?;
    Ok(signed.into_string())
}

fn secret_box(text: &str) -> Result<SecretKeyBox, PackageError> {
    let bad =
        |_| PackageError::new("not a secret key of minisign").hint("`cogn sign --generate FILE` creates one");
    SecretKeyBox::from_string(text).map_err(bad)
}

/// Returns the key that signed an archive. Refuses a signature by none of the given keys, and a missing signature if
/// keys are given.
pub fn verify(
    archive: &[u8],
    signature: Option<&str>,
    keys: &[TrustedKey],
) -> Result<Option<String>, PackageError> {
    let Some(signature) = signature else {
        return if keys.is_empty() {
            Ok(None)
        } else {
            Err(PackageError::new("the package is not signed, but a signature is required")
                .hint("Ask the publisher to sign it, or leave out `--key`"))
        };
    };
    if keys.is_empty() {
        return Ok(None);
    }
    let bad = || PackageError::new("the signature of the package is damaged");
    let signature = SignatureBox::from_string(signature).map_err(|_| bad())?;
    let fits = |key: &&TrustedKey| {
        minisign::verify(&key.0, &signature, Cursor::new(archive), true, false, false).is_ok()
    };
    let signer = keys.iter().find(fits).map(TrustedKey::text);
    signer.map(Some).ok_or_else(|| {
        PackageError::new("the signature of the package is from none of the trusted keys")
            .hint("Do not use it, unless its publisher says that the key has changed")
    })
}

/// Refuses a package whose signer differs from that of the installed one, or whose signature is missing.
pub(crate) fn check_same_signer(
    name: &str,
    known: Option<&LockedModule>,
    signer: Option<&str>,
    overwrite: Overwrite,
) -> Result<(), PackageError> {
    let before = known.and_then(|known| known.signed_by.as_deref());
    match before {
        Some(before) if signer != Some(before) && overwrite == Overwrite::Intact => Err(PackageError::new(
            format!("the installed package was signed by `{before}`, but this one is not: `{name}`"),
        )
        .hint("Contact its publisher; `--key NEW --force` accepts another key")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(keys: &NewKeys) -> TrustedKey {
        TrustedKey::parse(&keys.public).unwrap()
    }

    #[test]
    fn a_signature_fits_its_key_and_its_bytes() {
        let (ours, other) = (generate(None).unwrap(), generate(None).unwrap());
        let signed = sign(&ours.secret, None, b"archive", "m-1.0.0.tar.gz").unwrap();
        let check = |bytes: &[u8], keys: &[TrustedKey]| verify(bytes, Some(&signed), keys);
        assert_eq!(check(b"archive", &[key(&other), key(&ours)]).unwrap(), Some(key(&ours).text()));
        assert!(check(b"Archive", &[key(&ours)]).is_err());
        assert!(check(b"archive", &[key(&other)]).is_err());
        assert!(verify(b"archive", None, &[key(&ours)]).is_err(), "a signature that is missing");
        assert!(verify(b"archive", Some("junk"), &[key(&ours)]).is_err());
        assert_eq!(check(b"archive", &[]).unwrap(), None, "nobody is trusted, so nobody is named");
        let changed = signed.replace("m-1.0.0.tar.gz", "m-9.0.0.tar.gz");
        assert!(verify(b"archive", Some(&changed), &[key(&ours)]).is_err(), "the comment is signed, too");
    }

    #[test]
    fn a_key_can_have_a_password() {
        let keys = generate(Some("secret".to_owned())).unwrap();
        assert!(needs_password(&keys.secret).unwrap());
        assert!(sign(&keys.secret, Some("other".to_owned()), b"a", "c").is_err());
        let signed = sign(&keys.secret, Some("secret".to_owned()), b"a", "c").unwrap();
        assert!(verify(b"a", Some(&signed), &[key(&keys)]).unwrap().is_some());
    }

    #[test]
    fn another_signer_is_noticed() {
        let known = LockedModule {
            version: "1.0.0".to_owned(),
            source: String::new(),
            resolved: String::new(),
            sha256: String::new(),
            tree: String::new(),
            signed_by: Some("RWkey".to_owned()),
        };
        let check = |signer, overwrite| check_same_signer("m", Some(&known), signer, overwrite);
        assert!(check(Some("RWkey"), Overwrite::Intact).is_ok());
        assert!(
            check(Some("RWother"), Overwrite::Intact).is_err() && check(None, Overwrite::Intact).is_err()
        );
        assert!(check(Some("RWother"), Overwrite::Anything).is_ok());
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "key", "untrusted comment: x\nnonsense"] {
            assert!(TrustedKey::parse(text).is_err(), "{text}");
        }
    }
}

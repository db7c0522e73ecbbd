//! The formats of names and labels, with the server's words for what is wrong with one.

use statefulset_scheduling_core::field::{BadValue, Error, ErrorList, Path};

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
    an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// An error for each thing that keeps `value` from being a DNS label.
pub(super) fn dns_label(value: &str, path: &Path, errors: &mut ErrorList) {
    format(value, path, 63, is_label(value), LABEL, errors);
}

/// An error for each thing that keeps `value` from being a DNS subdomain.
pub(super) fn dns_subdomain(value: &str, path: &Path, errors: &mut ErrorList) {
    format(value, path, 253, value.split('.').all(is_label), SUBDOMAIN, errors);
}

/// An error for each thing that keeps `value` from being the key of a label or an annotation.
pub(super) fn qualified_name(value: &str, path: &Path, errors: &mut ErrorList) {
    let name = match value.split_once('/') {
        Some((prefix, name)) => {
            dns_subdomain(prefix, path, errors);
            name
        }
        None => value,
    };
    format(name, path, 63, is_framed(name), QUALIFIED, errors);
}

/// An error for each thing that keeps `value` from being the value of a label.
pub(super) fn label_value(value: &str, path: &Path, errors: &mut ErrorList) {
    format(value, path, 63, value.is_empty() || is_framed(value), LABEL_VALUE, errors);
}

fn format(value: &str, path: &Path, maximum: usize, fits: bool, detail: &str, errors: &mut ErrorList) {
    let invalid = |detail: &str| Error::invalid(path, BadValue::String(value.to_owned()), detail);
    if value.len() > maximum {
        errors.push(invalid(&format!("must be no more than {maximum} bytes")));
    }
    if !fits {
        errors.push(invalid(detail));
    }
}

fn is_label(value: &str) -> bool {
    let bytes = value.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
}

fn is_framed(value: &str) -> bool {
    let bytes = value.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_by_format_and_length() {
        let count = |check: fn(&str, &Path, &mut ErrorList), value: &str| {
            let mut errors = ErrorList::new();
            check(value, &Path::new("x"), &mut errors);
            errors.iter().count()
        };
        assert_eq!((count(dns_label, "web-0"), count(dns_label, "a.b"), count(dns_label, "")), (0, 1, 1));
        assert_eq!(count(dns_label, &format!("{}-", "a".repeat(63))), 2);
        assert_eq!((count(dns_subdomain, "a.b"), count(dns_subdomain, "a..b")), (0, 1));
        assert_eq!((count(qualified_name, "example.com/A_b"), count(qualified_name, "/a")), (0, 1));
        assert_eq!((count(label_value, ""), count(label_value, "-a")), (0, 1));
    }
}

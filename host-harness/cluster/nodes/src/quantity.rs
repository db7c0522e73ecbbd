//! Amounts of resources, in thousandths, and sets of them.
//!
//! Stands for `resource.Quantity` and `framework.Resource`. Left out: anything below a thousandth,
//! which is rounded up, and the canonical form.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The resource of which every pod takes one.
pub const PODS: &str = "pods";

/// Thousandths of a unit.
type Milli = i128;

/// Amounts by resource; what is not named is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources(BTreeMap<Arc<str>, Milli>);

impl Resources {
    /// The amounts of a map as the API has it. What cannot be read counts as none.
    pub fn read(map: Option<&BTreeMap<String, Quantity>>) -> Self {
        let amounts = map.into_iter().flatten();
        Self(amounts.map(|(name, quantity)| (name.as_str().into(), milli(&quantity.0).unwrap_or(0))).collect())
    }

    /// Adds the amounts of another.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(Arc::clone(name)).or_default() += amount;
        }
    }

    /// Takes the amounts of another away; less than nothing may be left.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            *self.0.entry(Arc::clone(name)).or_default() -= amount;
        }
    }

    /// The larger amount of each.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let mine = self.0.entry(Arc::clone(name)).or_default();
            *mine = (*mine).max(*amount);
        }
    }

    /// Takes over every amount that another names.
    pub fn replace(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Sets an amount, in whole units.
    #[must_use]
    pub fn with(mut self, name: &str, units: i64) -> Self {
        self.0.insert(name.into(), Milli::from(units) * 1000);
        self
    }

    /// The resources of which there is less than `wanted`, of what is wanted at all.
    pub fn lacks<'a>(&'a self, wanted: &'a Self) -> impl Iterator<Item = &'a str> {
        wanted.0.iter().filter(|(name, amount)| **amount > 0 && self.amount(name) < **amount).map(|(name, _)| &**name)
    }

    /// How much would be left of what `wanted` asks, in thousandths of `whole`, on average.
    pub fn left_after(&self, wanted: &Self, whole: &Self) -> i128 {
        let shares = wanted.0.iter().filter(|(name, amount)| **amount > 0 && whole.amount(name) > 0);
        let (sum, count) = shares.fold((0, 0), |(sum, count), (name, amount)| {
            (sum + (self.amount(name) - amount) * 1000 / whole.amount(name), count + 1)
        });
        if count == 0 { 0 } else { sum / count }
    }

    fn amount(&self, name: &str) -> Milli {
        self.0.get(name).copied().unwrap_or_default()
    }
}

/// Thousandths of a quantity's text, rounded up.
fn milli(text: &str) -> Option<Milli> {
    let end = text.find(|it: char| !(it.is_ascii_digit() || matches!(it, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (base, exponent) = suffix_of(suffix)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits: Milli = format!("{whole}{fraction}").parse().ok()?;
    let decimals = i32::try_from(fraction.len()).ok()?;
    // digits * base^exponent * 1000 / 10^decimals
    let scaled = digits.checked_mul(1000)?;
    let (mut above, mut below): (Milli, Milli) = (1, 10_i128.checked_pow(decimals.unsigned_abs())?);
    let factor = base.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 {
        above = above.checked_mul(factor)?;
    } else {
        below = below.checked_mul(factor)?;
    }
    let scaled = scaled.checked_mul(above)?;
    Some(scaled.div_euclid(below) + Milli::from(scaled.rem_euclid(below) > 0))
}

/// Base and exponent of a suffix.
fn suffix_of(suffix: &str) -> Option<(Milli, i32)> {
    Some(match suffix {
        "" => (10, 0),
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (2, 10),
        "Mi" => (2, 20),
        "Gi" => (2, 30),
        "Ti" => (2, 40),
        "Pi" => (2, 50),
        "Ei" => (2, 60),
        other => (10, other.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_every_spelling() {
        let table: [(&str, Option<Milli>); 12] = [
            ("1", Some(1000)),
            ("250m", Some(250)),
            ("0.1", Some(100)),
            ("1.5", Some(1500)),
            ("100u", Some(1)),
            ("2k", Some(2_000_000)),
            ("1Ki", Some(1_024_000)),
            ("1.5Gi", Some(1_610_612_736_000)),
            ("1e3", Some(1_000_000)),
            ("12E", Some(12_000_000_000_000_000_000_000)),
            ("", None),
            ("1 apple", None),
        ];
        for (text, expected) in table {
            assert_eq!(milli(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_lacking_is_named() {
        let free = Resources::default().with("cpu", 2).with("memory", 10);
        let wanted = Resources::default().with("cpu", 3).with("nvidia.com/gpu", 1).with("memory", 10).with("none", 0);
        assert_eq!(free.lacks(&wanted).collect::<Vec<_>>(), ["cpu", "nvidia.com/gpu"]);
    }
}

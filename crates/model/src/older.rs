//! Loads in records of every version: a list since version 3, one TCP stream before.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Reads a list, the single load of records before version 3, or nothing (an empty list).
pub(crate) fn list<'de, D, New, Old>(from: D) -> Result<Vec<New>, D::Error>
where
    D: Deserializer<'de>,
    New: Deserialize<'de> + From<Old>,
    Old: Deserialize<'de>,
{
    from.deserialize_any(Either(PhantomData))
}

struct Either<New, Old>(PhantomData<(New, Old)>);

impl<'de, New, Old> Visitor<'de> for Either<New, Old>
where
    New: Deserialize<'de> + From<Old>,
    Old: Deserialize<'de>,
{
    type Value = Vec<New>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of loads, or the one load of an older record")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Old::deserialize(MapAccessDeserializer::new(map)).map(|old| vec![old.into()])
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }
}

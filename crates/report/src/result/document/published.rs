//! Published figures beside measured ones.

use serde::Serialize;
use wirecost_model::plan::Levels;

/// Published figures beside measured ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedResult {
    /// Who, what, on which hardware.
    pub source: String,
    /// Published ratios and those measured here.
    pub ratios: Vec<PublishedRatio>,
    /// Where a published configuration differs from the cell.
    pub notes: Vec<PublishedNote>,
}

/// A published ratio between two cells that differ in one factor, and the ratio measured here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRatio {
    /// The factor's key.
    pub factor: String,
    /// The level compared with.
    pub from: String,
    /// The level compared.
    pub to: String,
    /// The levels of the other varied factors.
    #[serde(rename = "where")]
    pub where_: Levels,
    /// Published throughput of `to` over that of `from`.
    pub published: f64,
    /// The ratio measured here; absent without a pair.
    pub here: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end of its 95 % interval.
    pub high: Option<f64>,
}

/// How a published configuration differs from the cell beside which it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishedNote {
    /// The levels of the cells.
    pub levels: Levels,
    /// How it differs.
    pub note: String,
}

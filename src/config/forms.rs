//! The forms of reports.

use clap::ValueEnum;

/// The form of the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object on stdout.
    Json,
}

/// The form of the report on an exploration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ReportFormat {
    /// For people.
    Text,
    /// One JSON object on stdout.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit's XML, for test servers.
    Junit,
}

impl ReportFormat {
    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Text => "text",
            ReportFormat::Json => "json",
            ReportFormat::Sarif => "sarif",
            ReportFormat::Junit => "junit",
        }
    }
}

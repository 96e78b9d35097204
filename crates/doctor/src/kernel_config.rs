//! The running kernel's build configuration, where a file has it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use flate2::read::GzDecoder;

/// How a part of the kernel was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionState {
    In,
    Module,
    Not,
}

/// A kernel's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelConfig {
    /// The file it was read from.
    pub(crate) path: String,
    /// Options that are `y` or `m`; every other one is off.
    options: BTreeMap<String, OptionState>,
}

impl KernelConfig {
    /// Reads the configuration of the running kernel; `None` where no file has it.
    pub(crate) fn read(release: &str) -> Option<Self> {
        let places = [
            "/proc/config.gz".to_owned(),
            format!("/boot/config-{release}"),
            format!("/lib/modules/{release}/config"),
        ];
        places.into_iter().find_map(|path| {
            let text = text(Path::new(&path)).ok()?;
            Some(Self::parse(path, &text)).filter(|config| !config.options.is_empty())
        })
    }

    pub(crate) fn parse(path: String, text: &str) -> Self {
        let options = text.lines().filter_map(|line| {
            let (name, value) = line.split_once('=')?;
            let built = match value.trim_end() {
                "y" => OptionState::In,
                "m" => OptionState::Module,
                _ => return None,
            };
            name.starts_with("CONFIG_")
                .then(|| (name.to_owned(), built))
        });
        Self {
            path,
            options: options.collect(),
        }
    }

    pub(crate) fn of(&self, option: &str) -> OptionState {
        self.options
            .get(option)
            .copied()
            .unwrap_or(OptionState::Not)
    }
}

fn text(path: &Path) -> io::Result<String> {
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut text = String::new();
        GzDecoder::new(File::open(path)?).read_to_string(&mut text)?;
        return Ok(text);
    }
    fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_built_in_a_module_or_not_there() {
        let text = "# CONFIG_GENEVE is not set\nCONFIG_VXLAN=y\nCONFIG_IFB=m\nCONFIG_HZ=1000\n";
        let config = KernelConfig::parse("config".into(), text);
        assert_eq!(config.of("CONFIG_VXLAN"), OptionState::In);
        assert_eq!(config.of("CONFIG_IFB"), OptionState::Module);
        for off in ["CONFIG_GENEVE", "CONFIG_HZ", "CONFIG_NOT_HEARD_OF"] {
            assert_eq!(config.of(off), OptionState::Not, "{off}");
        }
    }

    #[test]
    fn a_configuration_that_is_there_has_options_in_it() {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").expect("release");
        if let Some(config) = KernelConfig::read(release.trim()) {
            assert!(config.options.len() > 100, "{}", config.path);
        }
    }
}

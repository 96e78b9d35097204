//! The options of storage loads.

use wirecost_model::load::{Backing, Load, Pattern};

use super::LoadOptions;

impl LoadOptions {
    /// Sets the options of storage in a load. Adds to `wrong` the options that only storage has or that storage does
    /// not have.
    pub(super) fn storage(&self, load: &mut Load, wrong: &mut Vec<String>) {
        let workload = load.workload;
        let Some(storage) = &mut load.storage else {
            let odd = [
                ("--io-size", self.io_size.is_some()),
                ("--pattern", self.pattern.is_some()),
                ("--reads", self.reads.is_some()),
                ("--target", self.target.is_some()),
                ("--size", self.size.is_some()),
                ("--destructive", self.destructive),
                ("--overwrite", self.overwrite.is_some()),
            ];
            for (option, _) in odd.into_iter().filter(|(_, given)| *given) {
                wrong.push(format!("{option}: {workload} is no storage"));
            }
            return;
        };
        for (option, given) in [
            ("--message", self.message.is_some()),
            ("--think-time", self.think_time.is_some()),
            ("--nodelay", self.nodelay.is_some()),
        ] {
            if given {
                wrong.push(format!("{option}: storage has no such option"));
            }
        }
        let pattern = self.pattern.as_deref().and_then(Pattern::by_name);
        storage.pattern = pattern.unwrap_or(storage.pattern);
        match self
            .target
            .as_deref()
            .map(|text| (text, Backing::by_name(text)))
        {
            None => {}
            Some((_, Some(target))) => storage.target = target,
            Some((path, None)) if path.starts_with('/') => {
                load.path = Some(path.to_owned());
                storage.size = 0;
            }
            Some((text, None)) => match text.parse() {
                Ok(_) if self.size.is_some() => {
                    wrong.push("--size: a server's export has its own".to_owned());
                }
                Ok(server) => load.server = Some(server),
                Err(words) => wrong.push(format!(
                    "--target: {words}, or one of {}",
                    Backing::NAMES.join(", ")
                )),
            },
        }
        load.destructive = self.destructive;
        load.overwrite.clone_from(&self.overwrite);
        storage.reads = self.reads.unwrap_or(storage.reads);
        storage.size = self.size.unwrap_or(storage.size);
    }
}

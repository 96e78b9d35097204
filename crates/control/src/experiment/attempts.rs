//! Attempts at a sample: one that is invalid for a reason that may have passed is measured again, at once.

use std::collections::BTreeSet;
use std::mem;
use std::time::Instant;

use wirecost_agent::link::LinkError;
use wirecost_model::cell::Cell;
use wirecost_model::sample::{FailedAttempt, Invalid, Sample};

/// Attempts at a sample, at most.
const ATTEMPTS: usize = 3;

/// Which cells are measured again.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// Cells of which every attempt in the last round failed: they get one attempt until a sample of theirs is valid.
    failing: BTreeSet<u32>,
}

impl Attempts {
    /// Takes a sample of `cell` by `attempt`, which gets the sample and the number of the attempt, from 0. Failed
    /// attempts are kept in the sample.
    ///
    /// # Errors
    /// Those of `attempt`, after which there is no other one.
    pub(crate) fn take(
        &mut self,
        cell: &Cell,
        sample: &mut Sample,
        mut attempt: impl FnMut(&mut Sample, usize) -> Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        let begun = sample.clone();
        let most = if self.failing.contains(&cell.index) {
            1
        } else {
            ATTEMPTS
        };
        loop {
            let started = Instant::now();
            attempt(sample, sample.failed_attempts.len())?;
            let invalid = match &sample.invalid {
                None => {
                    self.failing.remove(&cell.index);
                    return Ok(());
                }
                Some(invalid) if !may_pass(invalid, sample, cell) => return Ok(()),
                Some(_) if sample.failed_attempts.len() + 1 >= most => {
                    self.failing.insert(cell.index);
                    return Ok(());
                }
                Some(invalid) => invalid.clone(),
            };
            let failed = FailedAttempt {
                invalid,
                marks: mem::take(&mut sample.marks),
                took_s: started.elapsed().as_secs_f64(),
            };
            let mut failed_attempts = mem::take(&mut sample.failed_attempts);
            failed_attempts.push(failed);
            *sample = Sample {
                failed_attempts,
                ..begun.clone()
            };
        }
    }
}

/// Whether the reason may be a busy machine or a lost packet rather than the cell: a proof without an answer, or a
/// window in which nothing arrived. What a host refused is not repeated, for it may be a level that cuts the host off;
/// nor is a load that ends by itself, for it may have taken minutes.
fn may_pass(invalid: &Invalid, sample: &Sample, cell: &Cell) -> bool {
    match invalid {
        Invalid::Proof(_) => sample.proofs.iter().any(|proof| !proof.proven),
        Invalid::Load(_) => {
            let mut loads = cell.loads.iter();
            !sample.loads.is_empty() && !loads.any(|named| named.load.ends_by_itself())
        }
        Invalid::Build(_) | Invalid::Setting(_) | Invalid::Agent(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use wirecost_model::end_window::End;
    use wirecost_model::fixtures;
    use wirecost_model::load::{Load, NamedLoad, Workload};
    use wirecost_model::offload::{Offload, Profile};
    use wirecost_model::sample::{Mark, Proof, ProofTime};

    use super::*;

    fn cell() -> Cell {
        let load = NamedLoad::alone(Load::new(Workload::TcpStream));
        fixtures::cell(
            3,
            &[],
            fixtures::network(),
            1500,
            Offload::profile(Profile::Plain),
            load,
        )
    }

    fn lost() -> Invalid {
        Invalid::Proof("no answer".into())
    }

    /// Takes a sample whose attempts end as `ends` say; returns the sample and how many attempts there were.
    fn taken(attempts: &mut Attempts, cell: &Cell, ends: &[Option<Invalid>]) -> (Sample, usize) {
        let mut sample = Sample::begun(4, 2, cell.index, 1.5);
        let mut made = 0;
        let took = attempts.take(cell, &mut sample, |sample, number| {
            let left = &sample.failed_attempts.clone();
            let begun = Sample {
                failed_attempts: left.clone(),
                ..Sample::begun(4, 2, cell.index, 1.5)
            };
            assert_eq!((&*sample, number, left.len()), (&begun, made, made));
            sample.invalid.clone_from(&ends[number]);
            sample.marks.push(Mark::GeneratorBound {
                load: number.to_string(),
                host: "a".into(),
                end: End::Client,
            });
            sample.not_steered = true;
            sample.proofs.push(Proof {
                when: ProofTime::Before,
                from: "a".into(),
                size: 1500,
                proven: ends[number].is_none(),
                reason: None,
                probes: 3,
                seconds: 0.1,
                seen: None,
            });
            sample.loads = vec![fixtures::load("tcp-stream", Workload::TcpStream)];
            made += 1;
            Ok(())
        });
        assert!(took.is_ok());
        (sample, made)
    }

    #[test]
    fn a_failed_attempt_is_kept_beside_the_one_that_counts() {
        let (sample, made) = taken(&mut Attempts::default(), &cell(), &[Some(lost()), None]);
        assert_eq!((made, &sample.invalid, sample.marks.len()), (2, &None, 1));
        let [failed] = &sample.failed_attempts[..] else {
            panic!("{sample:?}");
        };
        assert_eq!((&failed.invalid, failed.marks.len()), (&lost(), 1));
        assert!(failed.took_s >= 0.0);
    }

    #[test]
    fn a_cell_that_always_fails_is_measured_again_in_one_round_only() {
        let (cell, mut attempts) = (cell(), Attempts::default());
        let never = [(); ATTEMPTS].map(|()| Some(lost()));
        let (sample, made) = taken(&mut attempts, &cell, &never);
        let kept = sample.failed_attempts.len();
        assert_eq!(
            (made, kept, sample.invalid),
            (ATTEMPTS, ATTEMPTS - 1, Some(lost()))
        );
        assert_eq!(taken(&mut attempts, &cell, &never).1, 1);
        let other = Cell {
            index: cell.index + 1,
            ..cell.clone()
        };
        assert_eq!(taken(&mut attempts, &other, &never).1, ATTEMPTS);
        // It works after all: from now on it has as many attempts as the others.
        assert_eq!(taken(&mut attempts, &cell, &[None]).1, 1);
        assert_eq!(taken(&mut attempts, &cell, &never).1, ATTEMPTS);
    }

    #[test]
    fn what_another_attempt_does_not_change_is_not_tried_again() {
        let mut limited = cell();
        limited.loads[0].load = Load::new(Workload::Migration);
        let empty = || Invalid::Load("nothing arrived".into());
        for (cell, invalid, expected) in [
            (cell(), Invalid::Build("no geneve".into()), 1),
            (cell(), Invalid::Setting("no such sysctl".into()), 1),
            (cell(), empty(), ATTEMPTS),
            (limited, empty(), 1),
        ] {
            let ends = [(); ATTEMPTS].map(|()| Some(invalid.clone()));
            let (_, made) = taken(&mut Attempts::default(), &cell, &ends);
            assert_eq!(made, expected, "{invalid:?}");
        }
    }

    #[test]
    fn what_a_host_refused_is_not_tried_again() {
        for refused in [lost(), Invalid::Load("no memory".into())] {
            let mut made = 0;
            let mut sample = Sample::begun(0, 0, cell().index, 0.0);
            let took = Attempts::default().take(&cell(), &mut sample, |sample, _| {
                sample.invalid = Some(refused.clone());
                made += 1;
                Ok(())
            });
            assert!(took.is_ok());
            assert_eq!(made, 1, "{refused:?}");
        }
    }

    #[test]
    fn after_an_error_there_is_no_other_attempt() {
        let (cell, mut made) = (cell(), 0);
        let mut sample = Sample::begun(0, 0, cell.index, 0.0);
        let took = Attempts::default().take(&cell, &mut sample, |_, _| {
            made += 1;
            Err(LinkError::Interrupted)
        });
        assert!(matches!(took, Err(LinkError::Interrupted)));
        assert_eq!(made, 1);
    }
}

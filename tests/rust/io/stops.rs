//! Readers and writers ask the monitor often, and a stop leaves nothing half done.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use ndarray::Array2;
use svmarrow::context::{Context, Interruption, Monitor, Progress};
use svmarrow::expansion::KernelExpansion;
use svmarrow::io::libsvm_model::{self, ProbabilityParams, SvmType};
use svmarrow::io::safetensors::{self, Contents};
use svmarrow::io::svmlight::{self, IndexBase, ReadOptions};
use svmarrow::kernels::Kernel;
use svmarrow::{Error, Result};

use super::{Scratch, numbers};

/// Says stop at a tick, and counts them.
struct StopAt {
    tick: usize,
    ticks: AtomicUsize,
}

impl Monitor for StopAt {
    fn tick(&self, _: &Progress) -> ControlFlow<Interruption> {
        let tick = self.ticks.fetch_add(1, Ordering::Relaxed);
        if tick >= self.tick {
            ControlFlow::Break(Interruption::Interrupted)
        } else {
            ControlFlow::Continue(())
        }
    }
}

type Task<'a> = Box<dyn Fn(&Path, Context<'_>) -> Result<()> + 'a>;

#[test]
fn files_are_read_and_written_under_the_monitors_eye() {
    const ROWS: usize = 30_000;
    let values = Array2::from_shape_vec((ROWS, 20), numbers(1).take(ROWS * 20).collect()).unwrap();
    let coefficients = Array2::from_shape_vec((ROWS, 1), numbers(2).take(ROWS).collect()).unwrap();
    let targets: Vec<f64> = numbers(3).take(ROWS).collect();
    let model = KernelExpansion::new(Kernel::Linear, values.into(), coefficients, vec![0.0]).unwrap();
    let view = model.view();
    let write: [Task<'_>; 3] = [
        Box::new(|path, ctx| safetensors::write(path, &Contents::of(&view, ""), ctx)),
        Box::new(|path, ctx| {
            libsvm_model::write(
                path,
                SvmType::EpsilonSvr,
                &view,
                &[],
                &[],
                &ProbabilityParams::default(),
                ctx,
            )
        }),
        Box::new(|path, ctx| svmlight::write(path, view.vectors.reborrow(), &targets, ctx)),
    ];
    let read: [Task<'_>; 3] = [
        Box::new(|path, ctx| safetensors::read(path, ctx).map(drop)),
        Box::new(|path, ctx| libsvm_model::read(path, None, IndexBase::Auto, ctx).map(drop)),
        Box::new(|path, ctx| svmlight::read(path, &ReadOptions::default(), ctx).map(drop)),
    ];
    for (write, read) in write.iter().zip(&read) {
        let scratch = Scratch::new();
        let path = scratch.path("file");
        write(&path, Context::default()).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for task in [write, read] {
            let counted = StopAt { tick: usize::MAX, ticks: AtomicUsize::new(0) };
            task(&path, Context::default().with_monitor(&counted)).unwrap();
            let ticks = counted.ticks.into_inner();
            assert!(ticks >= whole.len() >> 20, "{ticks} looks for {} bytes", whole.len());
            for tick in [0, ticks / 2, ticks - 1] {
                let monitor = StopAt { tick, ticks: AtomicUsize::new(0) };
                let stopped = task(&path, Context::default().with_monitor(&monitor));
                assert!(
                    matches!(stopped, Err(Error::Stopped(Interruption::Interrupted))),
                    "{stopped:?} at {tick} of {ticks}"
                );
                assert_eq!(std::fs::read(&path).unwrap(), whole);
                assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
            }
        }
    }
}

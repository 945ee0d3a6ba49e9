//! sherpa-onnx's SenseVoice network as lele compiles it, for `worker_lele.py`.

use lele::tensor::TensorView;

#[allow(warnings)]
mod network {
    include!(concat!(env!("OUT_DIR"), "/network.rs"));
}

/// The compiled network, its weights and its buffers.
pub struct Loaded {
    network: network::SenseVoice<'static>,
    buffers: network::SenseVoiceWorkspace,
}

/// Take the weights, which must stay where they are for as long as the process lives.
///
/// # Safety
/// `weights` points to `length` readable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lele_load(weights: *const u8, length: usize) -> *mut Loaded {
    // SAFETY: promised by the caller.
    let data: &'static [u8] = unsafe { std::slice::from_raw_parts(weights, length) };
    let network = network::SenseVoice::new(data);
    Box::into_raw(Box::new(Loaded { network, buffers: network::SenseVoiceWorkspace::new() }))
}

/// Features (rows, 560) -> scores, into `out`; returns how many numbers that are.
///
/// # Safety
/// `loaded` comes from `lele_load`; `features` has rows * 560 numbers, `out` room for `room`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lele_run(
    loaded: *mut Loaded,
    features: *const f32,
    rows: usize,
    language: i64,
    itn: i64,
    out: *mut f32,
    room: usize,
) -> usize {
    // SAFETY: promised by the caller.
    let (loaded, features, out) = unsafe {
        (
            &mut *loaded,
            std::slice::from_raw_parts(features, rows * 560),
            std::slice::from_raw_parts_mut(out, room),
        )
    };
    let (shape, one) = ([1, rows, 560], [1]);
    let (count, language, itn) = ([rows as i64], [language], [itn]);
    let scores = loaded.network.forward_with_workspace(
        &mut loaded.buffers,
        TensorView::new(features, &shape),
        TensorView::new(&count, &one),
        TensorView::new(&language, &one),
        TensorView::new(&itn, &one),
    );
    let found = scores.data.len();
    if found <= room {
        out[..found].copy_from_slice(&scores.data);
    }
    found
}

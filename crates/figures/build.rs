//! Build script that takes plotly.js out of the crate `plotly` and compresses it, so that the
//! program holds a third of its text.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "figures")]
    compress_plotly();
}

#[cfg(feature = "figures")]
fn compress_plotly() {
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;
    use std::{env, fs, path::Path};

    // The crate gives plotly.js together with MathJax, each in a `script` of its own.
    let sources = plotly::Plot::offline_js_sources();
    let scripts = sources
        .split("<script")
        .skip(1)
        .filter_map(|script| script.split_once('>')?.1.split_once("</script>"));
    let plotly = scripts
        .map(|(text, _)| text.trim())
        .find(|text| text.contains("plotly.js v"))
        .expect("the crate plotly holds plotly.js");
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("plotly.js.gz");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plotly.as_bytes()).expect("memory takes everything");
    fs::write(out, encoder.finish().expect("memory takes everything"))
        .expect("OUT_DIR can be written");
}

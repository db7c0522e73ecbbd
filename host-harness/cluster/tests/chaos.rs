//! Chaos, as `make chaos` runs it: what fails is told with the seed that replays it.

use std::process::Command;

#[test]
fn two_hundred_seeds_of_chaos_come_to_rest_with_every_invariant() {
    let output = Command::new(env!("CARGO_BIN_EXE_chaos"))
        .args(["--seeds", "200"])
        .env("RUST_LOG", "off")
        .output()
        .expect("the binary is built with the tests");
    let told = String::from_utf8_lossy(&output.stdout);
    print!("{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    assert!(told.starts_with("200 seeds in ") && told.contains("; 0 seeds failed"), "{told}");
}

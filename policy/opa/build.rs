//! Links the module as OPA's hosts expect one: the memory is theirs, and five pages are what they make. Two of
//! them are the stack, of which JSON as deep as it is read takes half of one.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|target| target == "wasm32") {
        for argument in ["--import-memory", "--initial-memory=327680", "-zstack-size=131072"] {
            println!("cargo::rustc-cdylib-link-arg={argument}");
        }
    }
}

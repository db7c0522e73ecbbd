//! What the modules of the JavaScript and the OPA face need after the linker.
//!
//! `policy-link js MODULE FOLDER` writes the glue between a module and JavaScript; its generator is built
//! from the lock file, and so cannot be of another version than the macro. `policy-link opa MODULE FILE`
//! adds the constants that tell the version of OPA's ABI: a Rust `static` is exported as its address. It takes
//! the linker's own exports away.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use walrus::ir::Value;
use walrus::{ConstExpr, Export, Module, ValType};
use wasm_bindgen_cli_support::Bindgen;

/// OPA's ABI: 1.2 has the evaluation in one call.
const OPA_ABI: [(&str, i32); 2] = [("opa_wasm_abi_version", 1), ("opa_wasm_abi_minor_version", 2)];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["js", module, folder] => js(Path::new(module), Path::new(folder)),
        ["opa", module, file] => opa(Path::new(module), Path::new(file)),
        _ => bail!("usage: policy-link js MODULE FOLDER, or policy-link opa MODULE FILE"),
    }
}

fn js(module: &Path, folder: &Path) -> Result<()> {
    Bindgen::new()
        .input_path(module)
        .out_name("core")
        .web(true)?
        .typescript(true)
        .omit_default_module_path(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(folder)
}

fn opa(module: &Path, file: &Path) -> Result<()> {
    let mut module = Module::from_file(module).with_context(|| format!("{}", module.display()))?;
    for (name, version) in OPA_ABI {
        let constant = ConstExpr::Value(Value::I32(version));
        let global = module.globals.add_local(ValType::I32, false, false, constant);
        module.exports.add(name, global);
    }
    let own: Vec<_> = module.exports.iter().filter(|export| export.name.starts_with("__")).map(Export::id).collect();
    for export in own {
        module.exports.delete(export);
    }
    module.emit_wasm_file(file)
}

//! Functions of the program by their names, where something is to be done to them.

use super::loaded::is_left_out;
use super::session::SHIM_NAME;
use crate::base::text::escape;
use crate::binary::entries::Functions;
use crate::binary::modules::Module;
use crate::binary::Modules;

/// The functions that `name` stands for, as [`Functions::named`] has them, in all modules but those that are vsrun's or below the program; at
/// least one.
///
/// # Errors
/// There is none that can be changed: why.
pub(super) fn functions_named<'a>(name: &str, modules: &'a Modules) -> Result<Vec<(&'a Module, Functions)>, String> {
    let (mut found, mut elsewhere) = (Vec::new(), None);
    for module in modules.modules() {
        let functions =
            Functions::read(&module.elf, name).map_err(|e| format!("{}: {e}", escape(module.elf.path())))?;
        let named = functions.named();
        if named.whole.is_empty() && !named.chooses {
            continue;
        }
        if is_left_out(&module.name()) {
            // What vsrun gives in its place is libc's to the program.
            elsewhere = elsewhere.filter(|_| module.name().starts_with(SHIM_NAME)).or(Some(module.name()));
            continue;
        }
        if named.chooses {
            return Err(format!("in {} it chooses a function when it is loaded; name that", module.name()));
        }
        found.push((module, functions));
    }
    match (found.is_empty(), elsewhere) {
        (false, _) => Ok(found),
        (true, Some(module)) => Err(format!("it is a function of {module}, which stays as it is")),
        (true, None) => Err(
            "the program and its libraries have no function of that name (it may be inlined into its callers, or the file stripped)"
                .into(),
        ),
    }
}

//! The ABI's functions, and the memory behind them.
//!
//! This is the only place with raw pointers. What makes them sound:
//!
//! - There is one thread, and a host calls one function at a time.
//! - An address that a host hands in is one that it was given here, or that it has written to above the
//!   heap pointer, as the ABI demands. Another one harms nothing but this instance, whose memory is its own.
//! - Setting the heap pointer gives up all that lies above it. Nothing in here keeps an allocation from one
//!   call to the next but values and contexts that the host holds by address, and no `static` owns memory.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::entrypoint::{ENTRYPOINTS, Entrypoint, evaluate};
use crate::value::{self, PathError};

/// Hosts write above the heap pointer on their own and take it back to free what an evaluation took, so
/// the heap is one stack, and its top is the heap pointer.
struct Heap {
    /// Zero before the first use.
    top: AtomicUsize,
}

#[global_allocator]
static HEAP: Heap = Heap { top: AtomicUsize::new(0) };

const PAGE: usize = 64 * 1024;

unsafe extern "C" {
    /// Where the linker ends the module's own data.
    static __heap_base: u8;
}

impl Heap {
    fn top(&self) -> usize {
        match self.top.load(Ordering::Relaxed) {
            0 => &raw const __heap_base as usize,
            top => top,
        }
    }

    fn set(&self, top: usize) {
        self.top.store(top, Ordering::Relaxed);
    }

    /// Makes the memory reach up to `top`.
    fn reserve(top: usize) -> Option<()> {
        let missing = top.div_ceil(PAGE).saturating_sub(core::arch::wasm32::memory_size::<0>());
        let grown = missing == 0 || core::arch::wasm32::memory_grow::<0>(missing) != usize::MAX;
        grown.then_some(())
    }

    fn take(&self, size: usize, align: usize) -> Option<usize> {
        let start = self.top().checked_next_multiple_of(align)?;
        let top = start.checked_add(size)?;
        Self::reserve(top)?;
        self.set(top);
        Some(start)
    }
}

// SAFETY: blocks never overlap, since the top only ever moves over memory that is handed out, back over
// the block on top as it is freed, or to where the host sets it.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.take(layout.size(), layout.align()).map_or(std::ptr::null_mut(), |start| start as *mut u8)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if (block as usize).checked_add(layout.size()) == Some(self.top()) {
            self.set(block as usize);
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let start = block as usize;
        // A text that grows is usually the block on top: it grows where it is.
        if start.checked_add(layout.size()) == Some(self.top()) {
            let Some(top) = start.checked_add(size) else { return std::ptr::null_mut() };
            if Self::reserve(top).is_none() {
                return std::ptr::null_mut();
            }
            self.set(top);
            return block;
        }
        if size <= layout.size() {
            return block;
        }
        match self.take(size, layout.align()) {
            Some(start) => {
                let grown = start as *mut u8;
                // SAFETY: both blocks are as long as the old one, and the new one is above it.
                unsafe { std::ptr::copy_nonoverlapping(block, grown, layout.size()) };
                grown
            }
            None => std::ptr::null_mut(),
        }
    }
}

/// A value: a JSON text with a NUL after it, so that it is its own dump.
struct Value(String);

impl Value {
    fn leak(mut text: String) -> *mut Self {
        text.push('\0');
        Box::into_raw(Box::new(Self(text)))
    }

    fn text(&self) -> &str {
        self.0.strip_suffix('\0').unwrap_or(&self.0)
    }
}

/// The value at an address; without one, there is none.
fn value<'a>(address: *const Value) -> Option<&'a Value> {
    // SAFETY: see the head of this file.
    unsafe { address.as_ref() }
}

fn text<'a>(address: *const Value) -> &'a str {
    value(address).map_or("null", Value::text)
}

fn bytes<'a>(start: *const u8, length: usize) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: see the head of this file.
    unsafe { std::slice::from_raw_parts(start, length) }
}

/// The text of a result set: empty, which means undefined, where there is no such entrypoint.
fn results(entrypoint: i32, input: &[u8], data: *const Value) -> String {
    Entrypoint::from_id(entrypoint).map_or_else(|| "[]".to_owned(), |known| evaluate(known, input, text(data)))
}

/// The builtins that a host must have: none.
#[unsafe(no_mangle)]
extern "C" fn builtins() -> *mut Value {
    Value::leak("{}".to_owned())
}

/// The entrypoints and their ids.
#[unsafe(no_mangle)]
extern "C" fn entrypoints() -> *mut Value {
    Value::leak(ENTRYPOINTS.to_owned())
}

/// What is evaluated.
struct Context {
    input: *const Value,
    data: *const Value,
    entrypoint: i32,
    result: *mut Value,
}

/// A new context, for the first entrypoint.
#[unsafe(no_mangle)]
extern "C" fn opa_eval_ctx_new() -> *mut Context {
    let none = std::ptr::null_mut();
    Box::into_raw(Box::new(Context { input: none, data: none, entrypoint: 0, result: none }))
}

fn with(context: *mut Context, change: impl FnOnce(&mut Context)) {
    // SAFETY: see the head of this file.
    if let Some(context) = unsafe { context.as_mut() } {
        change(context);
    }
}

/// Sets the input of a context.
#[unsafe(no_mangle)]
extern "C" fn opa_eval_ctx_set_input(context: *mut Context, input: *const Value) {
    with(context, |context| context.input = input);
}

/// Sets the data of a context.
#[unsafe(no_mangle)]
extern "C" fn opa_eval_ctx_set_data(context: *mut Context, data: *const Value) {
    with(context, |context| context.data = data);
}

/// Sets what a context evaluates.
#[unsafe(no_mangle)]
extern "C" fn opa_eval_ctx_set_entrypoint(context: *mut Context, entrypoint: i32) {
    with(context, |context| context.entrypoint = entrypoint);
}

/// What came out of a context.
#[unsafe(no_mangle)]
extern "C" fn opa_eval_ctx_get_result(context: *mut Context) -> *mut Value {
    let mut result = std::ptr::null_mut();
    with(context, |context| result = context.result);
    result
}

/// Evaluates a context. It always succeeds, which is 0.
#[unsafe(no_mangle)]
extern "C" fn eval(context: *mut Context) -> i32 {
    with(context, |context| {
        let input = text(context.input).as_bytes();
        context.result = Value::leak(results(context.entrypoint, input, context.data));
    });
    0
}

/// Evaluates an entrypoint in one call: the dump of the result set, as JSON (`format` 0) or as OPA writes
/// values (1), which is the same for those without sets.
#[unsafe(no_mangle)]
extern "C" fn opa_eval(
    _reserved: i32,
    entrypoint: i32,
    data: *const Value,
    input: *const u8,
    input_length: usize,
    heap: usize,
    _format: i32,
) -> *const u8 {
    HEAP.set(heap);
    opa_json_dump(Value::leak(results(entrypoint, bytes(input, input_length), data)))
}

/// A block of memory for the host to write to.
#[unsafe(no_mangle)]
extern "C" fn opa_malloc(size: usize) -> *mut u8 {
    HEAP.take(size, align_of::<usize>()).map_or(std::ptr::null_mut(), |start| start as *mut u8)
}

/// Frees a block: all are freed when the host sets the heap pointer back.
#[unsafe(no_mangle)]
extern "C" fn opa_free(_block: *mut u8) {}

/// The value that a JSON text is; 0 where it is none. Some hosts count the NUL after it.
#[unsafe(no_mangle)]
extern "C" fn opa_json_parse(start: *const u8, length: usize) -> *mut Value {
    match std::str::from_utf8(bytes(start, length)).map(|text| text.trim_end_matches('\0')) {
        Ok(text) if value::is_json(text) => Value::leak(text.to_owned()),
        _ => std::ptr::null_mut(),
    }
}

/// As [`opa_json_parse`]: values in here have no sets.
#[unsafe(no_mangle)]
extern "C" fn opa_value_parse(start: *const u8, length: usize) -> *mut Value {
    opa_json_parse(start, length)
}

/// The JSON text of a value, with a NUL at its end.
#[unsafe(no_mangle)]
extern "C" fn opa_json_dump(address: *const Value) -> *const u8 {
    value(address).map_or(c"null".as_ptr().cast(), |value| value.0.as_ptr())
}

/// As [`opa_json_dump`].
#[unsafe(no_mangle)]
extern "C" fn opa_value_dump(address: *const Value) -> *const u8 {
    opa_json_dump(address)
}

/// The top of the heap.
#[unsafe(no_mangle)]
extern "C" fn opa_heap_ptr_get() -> usize {
    HEAP.top()
}

/// Sets the top of the heap: all above it is free.
#[unsafe(no_mangle)]
extern "C" fn opa_heap_ptr_set(top: usize) {
    HEAP.set(top);
}

/// Puts a value into another one.
#[unsafe(no_mangle)]
extern "C" fn opa_value_add_path(base: *mut Value, path: *const Value, added: *const Value) -> i32 {
    replace(base, |base| value::add_path(base, text(path), text(added)))
}

/// Removes a member of a value.
#[unsafe(no_mangle)]
extern "C" fn opa_value_remove_path(base: *mut Value, path: *const Value) -> i32 {
    replace(base, |base| value::remove_path(base, text(path)))
}

fn replace(base: *mut Value, change: impl FnOnce(&str) -> Result<String, PathError>) -> i32 {
    // SAFETY: see the head of this file.
    let Some(base) = (unsafe { base.as_mut() }) else { return PathError::Internal as i32 };
    match change(base.text()) {
        Ok(mut text) => {
            text.push('\0');
            base.0 = text;
            0
        }
        Err(error) => error as i32,
    }
}

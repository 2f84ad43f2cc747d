// Loaded before the product with --expose-gc --import: its garbage is collected once a second.
setInterval(globalThis.gc, 1_000).unref();

// Loaded before the product with --expose-gc --import: collects its garbage once a second.
setInterval(globalThis.gc, 1_000).unref();

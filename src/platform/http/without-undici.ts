/**
 * An `import` of node:http reads all that the module exports, and by three of its names node loads its fetch and WebSocket
 * (undici): 20 ms of a start and 3 MB, for what nobody here takes from there. Whoever calls `fetch` has it loaded then.
 *
 * To have run before anything is loaded that imports node:http: node reads the names when it links, so what comes after comes by
 * `import()`.
 */
for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent'])
  Reflect.deleteProperty(process.getBuiltinModule('node:http'), name);

/**
 * An `import` of node:http reads all that the module exports, and by three of its names node loads its fetch and WebSocket
 * (undici): 20 ms of a start and 3 MB, for what nobody here takes from there. Whoever calls `fetch` has it loaded then.
 *
 * To be imported before anything that imports node:http.
 */
for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent'])
  Reflect.deleteProperty(process.getBuiltinModule('node:http'), name);

import './platform/http/without-undici.js';

const { runService } = await import('./run-service.js');
await runService();

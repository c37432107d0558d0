import { createServer } from 'node:http';
import { introspect } from './introspection.js';

/** For auth_request of nginx: 204 for a valid customer token, 401 for another one, 503 if the service is away. */
export const server = createServer(async (request, response) => {
  const token = /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1];
  try {
    const claims = token && (await introspect(token));
    if (claims) {
      const ids = { 'X-Customer-Id': claims.sub, 'X-Organization-Id': claims.organization_id };
      response.writeHead(204, { ...ids, 'X-Speaker-Id': claims.act?.sub ?? claims.sub });
    } else response.writeHead(401, { 'WWW-Authenticate': token ? 'Bearer error="invalid_token"' : 'Bearer' });
  } catch {
    response.writeHead(503, { 'Retry-After': '1' });
  }
  response.end();
});
server.listen(Number(process.env.PORT ?? 9000), '127.0.0.1');

/** node-oidc-provider: client_credentials with an ES256 JWT. It stores tokens in memory, and no customers. */
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const { PORT = '0' } = process.env;
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const RESOURCE = 'https://chat.example';
const provider = new Provider(`http://localhost:${PORT}`, {
  clients: [
    {
      client_id: 'site',
      client_secret: 'secret-of-the-site',
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
      token_endpoint_auth_method: 'client_secret_post',
      id_token_signed_response_alg: 'ES256',
    },
  ],
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), alg: 'ES256', use: 'sig', kid: 'one' }] },
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => RESOURCE,
      getResourceServerInfo: () => ({ scope: 'chat', accessTokenFormat: 'jwt', jwt: { sign: { alg: 'ES256' } } }),
    },
  },
});
provider.listen(Number(PORT), '127.0.0.1');

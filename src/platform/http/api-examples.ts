/** The ids, URLs and scopes are those of the demo registry of `npm start`. No value is a real secret. */
export const EXAMPLE = {
  organizationId: '390e44e6-f1e6-4368-86dd-b74514508c2e',
  groupId: 'sales',
  clientId: '9cbf3a968289727cb3cdfe83ab1d9836',
  serverClientId: '2d1f4b7c90a84e35b6c1d8f7a2e0935c',
  nativeClientId: '5e0c7d1a3b8f4296a1c4e7f09d2b6835',
  clientSecret: 'example-secret-of-32-or-more-characters',
  publicKey: {
    ...{ kty: 'EC', crv: 'P-256', kid: 'key-1' },
    x: 'QgWBAF50LTnJsr9bBXK_L_j58evyNkxtjMNC7rQIxtE',
    y: 'NHJPskA8ojcqxrY6wNWaqiDBOfvsGeRmyTXtSzFysb0',
  },
  redirectUri: 'http://localhost:3000/',
  origin: 'http://localhost:8080',
  resourceServerId: 'chat-api',
  agentEmail: 'agent@acme.example',
  agentPassword: 'example-password',
  agentId: '0192f0a1-1c2d-7e3f-8a4b-5c6d7e8f9a0b',
  entityId: '0192f0a1-7b3c-7d4e-9f50-61728394a5b6',
  linkedId: '0192f0a1-8c4d-7e5f-8061-728394a5b6c7',
  externalId: 'user-4711',
  browserId: '0192f0a1-6a5b-7c4d-8e3f-2a1b0c9d8e7f',
  tokenId: '0192f0a2-3d4e-7f50-a161-b2c3d4e5f607',
  sessionId: '0192f0a2-4e5f-7061-b272-c3d4e5f60718',
  requestId: '0192f0a2-5f60-7172-8383-d4e5f6071829',
  accessToken: 'dev:HEADER.CLAIMS.SIGNATURE',
  transferToken: 'dev:EXAMPLE-TRANSFER-TOKEN',
  authorizationCode: 'dev:EXAMPLE-AUTHORIZATION-CODE',
  refreshToken: 'dev:EXAMPLE-REFRESH-TOKEN',
  /** The pair of RFC 7636 appendix B. */
  codeVerifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
  codeChallenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  scope: 'customers:own',
  time: '2026-11-22T12:00:00.000Z',
  laterTime: '2026-11-23T12:00:00.000Z',
  /** `time` in seconds since 1970. */
  seconds: 1_795_348_800,
  cursor: 'EXAMPLE-CURSOR',
} as const;

export const EXAMPLE_PAGE = '<!doctype html>\n<html lang="en">…</html>';

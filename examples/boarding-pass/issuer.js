// @ts-check
/** An issuer, to try the grant: writes a new public key into registry.yaml, and prints a proof that it has signed. */
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';

const DAY_SECONDS = 86_400;

const { privateKey, publicKey } = await generateKeyPair('ES256');
const jwks = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'issuer-1' }] });
writeFileSync('registry.yaml', readFileSync('registry.yaml', 'utf8').replace(/jwks: .*/, `jwks: ${jwks}`));

const iat = Math.floor(Date.now() / 1000);
const claims = { iss: 'https://airline.example', aud: 'https://acme.example', sub: 'passenger-1', jti: randomUUID() };
const proof = new SignJWT({ ...claims, iat, exp: iat + DAY_SECONDS }).setProtectedHeader({
  alg: 'ES256',
  kid: 'issuer-1',
});
process.stdout.write(`${await proof.sign(privateKey)}\n`);

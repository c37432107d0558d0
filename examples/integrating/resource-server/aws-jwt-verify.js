import { JwtVerifier } from 'aws-jwt-verify';

const ISSUER = process.env.AUTH_URL ?? 'http://localhost:3000';
const jwksUri = process.env.JWKS_URL ?? `${ISSUER}/.well-known/jwks.json`;

const verifier = JwtVerifier.create({
  issuer: ISSUER,
  jwksUri,
  audience: 'customer-api',
  customJwtCheck({ header }) {
    if (header.typ !== 'at+jwt') throw new Error('not an access token');
  },
});

/** Resolves to the claims of a customer token; rejects if the token is not valid. */
export function verify(token) {
  return verifier.verify(token.slice(token.indexOf(':') + 1)); // without the region prefix
}

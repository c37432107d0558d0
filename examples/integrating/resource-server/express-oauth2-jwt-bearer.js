import express from 'express';
import { auth } from 'express-oauth2-jwt-bearer';

const ISSUER = process.env.AUTH_URL ?? 'http://localhost:3000';
const jwksUri = process.env.JWKS_URL ?? `${ISSUER}/.well-known/jwks.json`;

export const app = express();
app.use((request, _response, next) => {
  const { authorization } = request.headers;
  request.headers.authorization = authorization?.replace(/^Bearer [^:]*:/i, 'Bearer '); // without the region prefix
  next();
});
app.use(auth({ issuer: ISSUER, jwksUri, audience: 'customer-api', tokenSigningAlg: 'ES256', strict: true }));
app.get('/chats', (request, response) => {
  response.json({ customer: request.auth?.payload.sub });
});

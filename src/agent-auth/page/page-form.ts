import type { Request } from 'express';
import { OAuthError } from '../../oauth/oauth-error.js';
import { readParameters } from '../../oauth/parameters.js';
import { readBody } from '../../oauth/request-body.js';

const foreignOrigin = () => OAuthError.invalidRequest('Origin: must be the origin of this service');

/** The errors that every form can have, for the OpenAPI document. */
export const formErrors = () => [foreignOrigin()];

/**
 * Reads a form of a page, never JSON (protocol §2.4). Every browser sends the Origin of a posted form, so a request
 * without one, or from another origin, was not sent by a page of the service (cross-site request forgery).
 *
 * @throws OAuthError if the origin is another one
 */
export async function readPageForm<Form extends object>(
  form: new () => Form,
  request: Request,
  origin: string,
): Promise<Form> {
  if (request.headers.origin !== origin) throw foreignOrigin();
  return readParameters(form, await readBody(request, { form: 'only' }));
}

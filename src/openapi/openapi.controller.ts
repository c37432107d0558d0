import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Get, Header, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import { OAuthError } from '../oauth/oauth-error.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { OpenApiDocument } from './openapi-document.js';
import { swaggerUiFile } from './swagger-ui.js';

/** The files of the page. Swagger UI is served from here, so that the page needs no other server. */
const FILES: Record<string, { type: string; url: string }> = {
  'swagger-ui.css': { type: 'text/css; charset=utf-8', url: swaggerUiFile('swagger-ui.css') },
  'swagger-ui-bundle.js': {
    type: 'text/javascript; charset=utf-8',
    url: swaggerUiFile('swagger-ui-bundle.js'),
  },
  'start.js': { type: 'text/javascript; charset=utf-8', url: new URL('views/start.js', import.meta.url).href },
};
/** Swagger UI needs inline styles, and icons from `data:` URLs. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/** The OpenAPI document and a page to read it (protocol §7.5). */
@ManagementController('')
export class OpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get('openapi.json')
  @ApiRoute({ summary: 'Get the OpenAPI document', response: 'application/json' })
  openApi(): object {
    return this.document.read();
  }

  @Get('docs')
  @Header('Content-Type', 'text/html; charset=utf-8')
  @Header('Content-Security-Policy', CONTENT_SECURITY_POLICY)
  @ApiRoute({ summary: 'Show the OpenAPI document as a page', response: 'text/html' })
  page(): Promise<string> {
    return readFile(new URL('views/docs.html', import.meta.url), 'utf8');
  }

  @Get('docs/:file')
  @ApiRoute({ summary: 'Get a file of the documentation page', response: '*/*', errorStatuses: [404] })
  async file(@Param('file') name: string, @Res({ passthrough: true }) response: Response): Promise<string> {
    const file = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
    if (!file) throw OAuthError.notFound();
    response.setHeader('Content-Type', file.type);
    return readFile(fileURLToPath(file.url), 'utf8');
  }
}

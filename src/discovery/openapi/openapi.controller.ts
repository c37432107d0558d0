import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Get, Header, Param, Res } from '@nestjs/common';
import type { Response } from 'express';
import { OAuthError } from '../../oauth/oauth-error.js';
import { ApiRoute } from '../../platform/http/api-route.js';
import { BothPortsController } from '../../platform/http/listener.decorators.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { OpenApiDocument } from './openapi-document.js';

/** The build copies Swagger UI into this folder (scripts/build.js). */
const BUILT = new URL('swagger-ui/', import.meta.url);

/** The files of the page. Swagger UI is served from here, so that the page needs no other server. */
const FILES: Record<string, string> = {
  'swagger-ui.css': swaggerUiFile('swagger-ui.css'),
  'swagger-ui-bundle.js': swaggerUiFile('swagger-ui-bundle.js'),
  'start.js': new URL('views/start.js', import.meta.url).href,
};
/** Swagger UI needs icons from `data:` URLs. Nothing inline runs or styles. */
const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; frame-ancestors 'none'";

/** On the public port, the document has the public routes, and the page exists with TRY_IT only (protocol §7.5). */
@BothPortsController('')
export class OpenApiController {
  constructor(private readonly document: OpenApiDocument) {}

  @Get('openapi.json')
  @Header('Content-Type', 'application/json; charset=utf-8')
  @ApiRoute({
    summary: 'Get the OpenAPI document',
    description: 'This document, in the format OpenAPI 3.1.',
    response: 'application/json',
  })
  openApi(): string {
    return this.document.text(requestContext.required().listener === 'public' ? 'public' : 'management');
  }

  @Get('docs')
  @Header('Content-Type', 'text/html; charset=utf-8')
  @Header('Content-Security-Policy', CONTENT_SECURITY_POLICY)
  @ApiRoute({
    summary: 'Show the OpenAPI document as a page',
    description: 'Shows this document in a browser, with forms that send requests.',
    response: 'text/html',
  })
  page(): Promise<string> {
    return readFile(new URL('views/docs.html', import.meta.url), 'utf8');
  }

  @Get('docs/:file')
  @ApiRoute({ summary: 'Get a file of the documentation page', isPageFile: true })
  async file(@Param('file') name: string, @Res({ passthrough: true }) response: Response): Promise<string> {
    const url = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
    if (!url) throw OAuthError.notFound();
    response.setHeader('Content-Type', `text/${name.endsWith('.css') ? 'css' : 'javascript'}; charset=utf-8`);
    return readFile(fileURLToPath(url), 'utf8');
  }
}

/** The build copies the files, because the package brings @scarf/scarf, which reports each installation. */
function swaggerUiFile(name: string): string {
  return existsSync(BUILT) ? new URL(name, BUILT).href : import.meta.resolve(`swagger-ui-dist/${name}`);
}

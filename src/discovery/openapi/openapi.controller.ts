import { Get, Header } from '@nestjs/common';
import { ApiRoute } from '../../platform/http/api-route.js';
import { BothPortsController } from '../../platform/http/listener.decorators.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { OpenApiDocument } from './openapi-document.js';

/** On the public port, the document has the public routes only (protocol §7.5). */
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
}

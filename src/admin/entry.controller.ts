import { Delete, Get, Param, Patch, Req, type Type, UseGuards, UseInterceptors } from '@nestjs/common';
import type { Request } from 'express';
import { Audit } from '../audit/audit.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { apiPropertyOf } from '../platform/http/api-property.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import type { Entry } from '../registry/entries/entry.js';
import { auditRegistryChange } from '../registry/registry-audit.js';
import { RegistryEditor } from '../registry/registry-editor.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';
import { AdminTimeoutInterceptor } from './admin-timeout.interceptor.js';
import type { EntryResponses } from './entry-responses.js';

const OWNED_BY_FILE = OAuthError.conflict('the entry is in the registry file and can only be changed there');

/** The routes of one entry: `GET`, `PATCH` and `DELETE /admin/PATH/KEY` (protocol §9.1). */
export function entryController(resource: RegistryResource, responses: EntryResponses): Type<object> {
  const { noun, list, path, entry, key } = resource;
  const pathParameters = { key: apiPropertyOf(responses.entry, key.field) };

  @ManagementController(`admin/${path}/:key`)
  @UseGuards(OperatorGuard)
  @UseInterceptors(AdminTimeoutInterceptor)
  class EntryController {
    constructor(
      private readonly editor: RegistryEditor,
      private readonly audit: Audit,
    ) {}

    @Get()
    @ApiRoute({
      summary: `Get one of the ${list}`,
      description: `Returns the ${noun}, without its secret.`,
      pathParameters,
      response: responses.entry,
    })
    read(@Param('key') key: string): Promise<Entry> {
      return this.editor.read(resource, key);
    }

    @Patch()
    @ApiRoute({
      summary: `Change one of the ${list} by a merge patch (RFC 7396)`,
      description: 'Changes the fields that the body has. `null` removes a field. Other fields keep their value.',
      pathParameters,
      body: entry,
      bodyExamples: { '': [resource.exampleChange ?? ''] },
      response: responses.entry,
      errors: () => [OAuthError.invalidRequest(`${key.field}: cannot be changed`), OWNED_BY_FILE],
    })
    async change(@Req() request: Request, @Param('key') key: string): Promise<Entry> {
      const patch = parseJsonObject(await readBody(request));
      await this.editor.change(resource, key, patch);
      const fields = Object.keys(patch);
      auditRegistryChange(this.audit, { actor: operatorActor(), resource, key, change: 'changed', fields });
      return this.editor.read(resource, key);
    }

    @Delete()
    @ApiRoute({
      summary: `Delete one of the ${list}`,
      description: `Deletes the ${noun} and ends its tokens.`,
      pathParameters,
      errors: () => [OWNED_BY_FILE],
    })
    async delete(@Param('key') key: string): Promise<object> {
      await this.editor.delete(resource, key);
      auditRegistryChange(this.audit, { actor: operatorActor(), resource, key, change: 'deleted' });
      return {};
    }
  }
  return EntryController;
}

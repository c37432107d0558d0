import { Delete, Get, Param, Patch, Req, type Type, UseGuards, UseInterceptors } from '@nestjs/common';
import type { Request } from 'express';
import { Audit } from '../audit/audit.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import type { Entry } from '../registry/entries/entry.js';
import { auditRegistryChange } from '../registry/registry-audit.js';
import { RegistryEditor } from '../registry/registry-editor.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';
import { AdminTimeoutInterceptor } from './admin-timeout.interceptor.js';
import type { EntryResponses } from './entry-responses.js';

/** The routes of one entry: `GET`, `PATCH` and `DELETE /admin/PATH/KEY` (protocol §9.1). */
export function entryController(resource: RegistryResource, responses: EntryResponses): Type<object> {
  const { list, path, entry } = resource;

  @ManagementController(`admin/${path}/:key`)
  @UseGuards(OperatorGuard)
  @UseInterceptors(AdminTimeoutInterceptor)
  class EntryController {
    constructor(
      private readonly editor: RegistryEditor,
      private readonly audit: Audit,
    ) {}

    @Get()
    @ApiRoute({ summary: `Get one of the ${list}`, response: responses.entry })
    read(@Param('key') key: string): Promise<Entry> {
      return this.editor.read(resource, key);
    }

    @Patch()
    @ApiRoute({
      summary: `Change one of the ${list} by a merge patch (RFC 7396)`,
      body: entry,
      response: responses.entry,
      errorStatuses: [409],
    })
    async change(@Req() request: Request, @Param('key') key: string): Promise<Entry> {
      const patch = parseJsonObject(await readBody(request));
      await this.editor.change(resource, key, patch);
      const fields = Object.keys(patch);
      auditRegistryChange(this.audit, { actor: operatorActor(), resource, key, change: 'changed', fields });
      return this.editor.read(resource, key);
    }

    @Delete()
    @ApiRoute({ summary: `Delete one of the ${list}`, errorStatuses: [409] })
    async delete(@Param('key') key: string): Promise<object> {
      await this.editor.delete(resource, key);
      auditRegistryChange(this.audit, { actor: operatorActor(), resource, key, change: 'deleted' });
      return {};
    }
  }
  return EntryController;
}

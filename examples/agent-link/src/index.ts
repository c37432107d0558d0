import { defineExtension } from '@customer-authorization/service/grant';
import { AgentLinkController } from './agent-link.controller.js';
import { AgentLinkGrant } from './agent-link.grant.js';

/** What this package adds to the service. EXTENSION names this file. */
export default defineExtension({ grants: [AgentLinkGrant], controllers: [AgentLinkController] });

import type { RegistryResource } from '../../src/registry/resources/registry-resource.js';
import { REGISTRY_RESOURCES } from '../../src/registry/resources/registry-resources.js';
import { webhookResource } from './webhook.resource.js';

// Modules of the service read the list when they are loaded, so a test imports this file before them.
(REGISTRY_RESOURCES as RegistryResource[]).push(webhookResource);

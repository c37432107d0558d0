// The build copies this file of the package browser-client.
export * from '../../browser-client/src/request-error.js';

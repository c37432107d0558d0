interface Tag {
  name: string;
  description: string;
  paths: RegExp;
}

/** The parts of the document. The first tag whose paths match a route is that of the route. */
export const TAGS: Tag[] = [
  {
    name: 'Customers',
    description: 'Access tokens of customers: how a browser, an app or a backend gets and ends them.',
    paths: /^\/(v2\/)?customer(\/|$)/,
  },
  {
    name: 'Agents',
    description: 'How an agent signs in and gets a token.',
    paths: /^\/(v2\/token|sign-in|sign-out|consent)?$/,
  },
  {
    name: 'Metadata',
    description: 'What the service publishes about itself.',
    paths: /^\/(\.well-known|openapi)/,
  },
  { name: 'Resource servers', description: 'Whether a token is valid, and which have ended.', paths: /^\/oauth2\// },
  { name: 'Administration', description: 'Registry, customers and their tokens.', paths: /^\/admin\// },
  { name: 'Operation', description: 'Probes and metrics.', paths: /^\/(health\/|metrics)/ },
  { name: 'Extensions', description: 'Routes that an extension adds.', paths: /^/ },
];

export const tagOf = (path: string): string => TAGS.find(({ paths }) => paths.test(path))?.name as string;

'use client'; // the server renders the placeholder, and only the browser requests a token

import { errorText } from 'browser-client';
import { useEffect, useState } from 'react';
import { tokens } from './tokens.js';

export function Chat() {
  const [text, setText] = useState('…');
  useEffect(() => {
    let isMounted = true;
    const show = (message) => isMounted && setText(message);
    tokens.entityId().then(
      (id) => show(`You are the customer ${id}.`),
      (error) => show(errorText(error)),
    );
    return () => {
      isMounted = false;
    };
  }, []);
  return <p>{text}</p>;
}

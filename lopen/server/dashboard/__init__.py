"""The dashboard's pages: values of `lopen.application.overview` drawn as HTML."""

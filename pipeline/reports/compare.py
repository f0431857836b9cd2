"""The report of `compare`."""
def draw(result, folder): return "<html></html>"

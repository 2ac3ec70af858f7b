"""Summary of a fitted model for notebooks."""
def summary_html(name, Y, labels, lines):
    return ""
